"""`retoma rates`: how often something may be called by all runners together."""

from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.store.rate import RateSeen
from retoma.words import speak


def list_(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: app.rates.list())
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no rates"))
        return
    page = table(
        speak("key"),
        speak("calls a second"),
        speak("at once"),
        speak("at most"),
        speak("refused"),
        speak("paused until"),
    )
    for each in found:
        page.add_row(
            clean(each.key),
            f"{each.per_second:.3g}",
            f"{each.burst:.3g}",
            _bound(each),
            str(each.refused) if each.adaptive else "",
            at(each.paused_until),
        )
    console().print(page)


def _bound(rate: RateSeen) -> str:
    """What a person allows of a rate that is found by trying."""
    if not rate.adaptive:
        return ""
    return speak("adaptive") if rate.bound is None else f"{rate.bound:g}"


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
