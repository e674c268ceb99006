"""`retoma pauses`: what rests for a while."""

from typing import Annotated

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import at, clean
from retoma.words import say, speak, tell

WHAT = Annotated[str, typer.Argument(metavar="WHAT", help="application, kind or queue.")]


def scope_name(scope: str) -> str:
    from retoma.services.pauses import SCOPES, Scope

    return tell(SCOPES[Scope(scope)])


pauses = Noun("pauses")
pauses.verb(
    "pause",
    "pause",
    shows=lambda it, _: (
        speak(
            "{scope} {name} is paused: what runs ends",
            scope=scope_name(it.scope),
            name=clean(it.name),
        )
        if it.changed
        else speak(
            "{scope} {name} is paused already, since {since} UTC by {actor}",
            scope=scope_name(it.scope),
            name=clean(it.name),
            since=at(it.since),
            actor=clean(it.actor),
        )
    ),
    takes={"what": WHAT, "why": "The reason; it is shown and kept."},
)
pauses.verb(
    "resume",
    "resume",
    shows=lambda it, _: (
        speak("{scope} {name} goes on", scope=scope_name(it.scope), name=clean(it.name))
        if it.changed
        else speak(
            "{scope} {name} was not paused", scope=scope_name(it.scope), name=clean(it.name)
        )
    ),
    takes={"what": WHAT},
)
pauses.verb(
    "list_pauses",
    "list",
    shows=Rows(
        (say("what"), say("name"), say("since"), say("by"), say("why")),
        lambda each: (scope_name(each.scope), each.name, each.since, each.actor, each.why),
        none=say("nothing is paused"),
    ),
)
