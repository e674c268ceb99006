"""`retoma alerts`: what somebody should know of, and a hand on it."""

from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.ops.alerts import sentence
from retoma.engine.store.alerts import Alert
from retoma.words import speak, tell


def list_(
    database: str | None, as_json: bool, *, in_force: bool, before: int | None, limit: int
) -> None:
    found = ask(database, lambda app: app.alerts(in_force=in_force, before=before, limit=limit))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no alerts"))
        return
    page = table(
        speak("alert"),
        speak("severity"),
        speak("rule"),
        speak("since"),
        speak("closed"),
        speak("who knows"),
        speak("what"),
    )
    for each in found:
        page.add_row(
            str(each.id),
            str(each.severity),
            str(each.rule),
            at(each.since),
            at(each.closed_at),
            clean(_who(each)),
            clean(tell(sentence(each))),
        )
    console().print(page)


def acknowledge(database: str | None, as_json: bool, alert: int) -> None:
    seen = ask(database, lambda app: app.acknowledge_alert(alert, actor=ACTOR))
    if as_json:
        print_json(seen)
    else:
        who = clean(seen.acknowledged_by or "")
        print(speak("alert {alert} is known to {who}", alert=alert, who=who))


def silence(database: str | None, as_json: bool, alert: int, lasting: str) -> None:
    seen = ask(database, lambda app: app.silence_alert(alert, lasting, actor=ACTOR))
    if as_json:
        print_json(seen)
    else:
        print(
            speak(
                "alert {alert}: nobody is told before {until}",
                alert=alert,
                until=at(seen.silenced_until),
            )
        )


def _who(alert: Alert) -> str:
    if alert.silent:
        return speak("silent until {until}", until=at(alert.silenced_until))
    return alert.acknowledged_by or ""
