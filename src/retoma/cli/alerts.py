"""`retoma alerts`: what somebody should know of, and a hand on it."""

from typing import Annotated, Any

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import at, clean
from retoma.words import say, speak, tell


def who_knows(alert: Any) -> str:
    if alert.silent:
        return speak("silent until {until}", until=at(alert.silenced_until))
    return alert.acknowledged_by or ""


def told(alert: Any) -> str:
    from retoma.services.alerts import sentence

    return tell(sentence(alert))


alerts = Noun("alerts")
alerts.verb(
    "list_alerts",
    "list",
    shows=Rows(
        (
            *(say("alert"), say("severity"), say("rule"), say("since")),
            *(say("closed"), say("who knows"), say("what")),
        ),
        lambda each: (
            *(each.id, each.severity, each.rule, each.since, each.closed_at),
            *(who_knows(each), told(each)),
        ),
        none=say("no alerts"),
    ),
    takes={"every": Annotated[bool, typer.Option("--all", help="Also those that are closed.")]},
)
alerts.verb(
    "acknowledge_alert",
    "acknowledge",
    shows=lambda seen, given: speak(
        "alert {alert} is known to {who}",
        alert=given.alert,
        who=clean(seen.acknowledged_by or ""),
    ),
)
alerts.verb(
    "silence_alert",
    "silence",
    shows=lambda seen, given: speak(
        "alert {alert}: nobody is told before {until}",
        alert=given.alert,
        until=at(seen.silenced_until),
    ),
    takes={
        "lasting": Annotated[str, typer.Option("--for", metavar="LENGTH", help="Such as 2h.")]
    },
)
