"""`retoma limits`: how many jobs of a kind or key may run at once, and how many do."""

from retoma.console.kit import ACTOR, ask, clean, console, print_json, table
from retoma.words import speak


def list_(database: str | None, as_json: bool, *, after: str, limit: int) -> None:
    found = ask(database, lambda app: app.limits(after=after, limit=limit))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no limits"))
        return
    page = table(speak("key"), speak("running"), speak("at most"), speak("set by"))
    for each in found:
        by = speak("a person") if each.by_hand else speak("the code")
        page.add_row(clean(each.key), str(each.used), str(each.cap), by)
    out = console()
    out.print(page)
    if len(found) == limit:
        out.print(speak("more: --after {key}", key=clean(found[-1].key)))


def set_(database: str | None, as_json: bool, key: str, cap: int | None) -> None:
    ask(database, lambda app: app.set_limit(key, cap, actor=ACTOR))
    if as_json:
        print_json({"key": key, "cap": cap})
    elif cap is None:
        print(speak("limit {key} is what the code says", key=clean(key)))
    else:
        print(speak("limit {key}: at most {cap} run at once", key=clean(key), cap=cap))
