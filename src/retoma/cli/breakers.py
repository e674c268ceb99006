"""`retoma breakers`: what guards services that may be down, and a hand on it."""

from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.words import speak


def list_(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: app.breakers.list())
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no breakers"))
        return
    page = table(
        speak("breaker"),
        speak("state"),
        speak("outages"),
        speak("opens at"),
        speak("since"),
        speak("why"),
        speak("next probe"),
    )
    for each in found:
        page.add_row(
            clean(each.name),
            each.state,
            str(each.failures),
            str(each.threshold),
            at(each.since),
            clean(each.reason or ""),
            at(each.probe_at),
        )
    console().print(page)


def open_(database: str | None, as_json: bool, name: str, *, why: str) -> None:
    ask(database, lambda app: app.breakers.open(name, why, actor=ACTOR))
    if as_json:
        print_json({"name": name, "state": "open"})
    else:
        print(
            speak(
                "breaker {name} is open: who needs it waits outside, one job tries it after its"
                " rest",
                name=clean(name),
            )
        )


def close(database: str | None, as_json: bool, name: str) -> None:
    ask(database, lambda app: app.breakers.close(name, actor=ACTOR))
    if as_json:
        print_json({"name": name, "state": "closed"})
    else:
        print(speak("breaker {name} is closed: all go on", name=clean(name)))
