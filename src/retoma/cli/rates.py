"""`retoma rates`: how often something may be called by all runners together."""

from retoma.cli.desk import ACTOR, ask, clean, console, print_json, table
from retoma.words import speak


def list_(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: app.rates.list())
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no rates"))
        return
    page = table(speak("key"), speak("calls a second"), speak("at once"))
    for each in found:
        page.add_row(clean(each.key), f"{each.per_second:g}", f"{each.burst:g}")
    console().print(page)


def set_(
    database: str | None, as_json: bool, key: str, per_second: float, burst: float | None
) -> None:
    ask(database, lambda app: app.rates.set(key, per_second, burst=burst, actor=ACTOR))
    if as_json:
        print_json({"key": key, "per_second": per_second, "burst": burst})
    else:
        print(
            speak(
                "rate {key}: {per_second:g} calls a second from now on",
                key=clean(key),
                per_second=per_second,
            )
        )
