"""`retoma runners`: who runs jobs, and asking one of them to leave."""

from typing import Annotated, Any

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import clean
from retoma.words import say, speak

SHOWN = 8  # characters of a boot


def stands(runner: Any) -> str:
    if runner.drain_at is not None and runner.state == "alive":
        return speak("alive, asked to leave")
    if runner.trouble:
        return f"{runner.state} ({runner.trouble})"
    if runner.expired and runner.state not in ("gone", "lost"):
        return speak("silent, its lease is over")
    return str(runner.state)


runners = Noun("runners")
runners.verb(
    "list_runners",
    "list",
    shows=Rows(
        (
            *(say("name"), say("state"), say("slots in use"), say("last beat")),
            *(say("version"), say("host"), say("pid"), say("knows"), say("boot")),
        ),
        lambda each: (
            *(each.name, stands(each), f"{each.held}/{each.slots}", each.beat_at),
            *(each.version, each.host.partition(" ")[0], each.pid),
            *(", ".join(each.knows), each.boot[:SHOWN]),
        ),
        none=say("no runner is alive: `retoma runner --app package.module:app`"),
    ),
    takes={
        "every": Annotated[bool, typer.Option("--all", help="Those that are gone or lost too.")]
    },
)
runners.verb(
    "drain_runner",
    "drain",
    shows=lambda told, _: speak(
        "{name} {boot} was asked to leave: it finishes or gives back its jobs first",
        name=clean(told.name),
        boot=told.boot[:SHOWN],
    ),
    takes={
        "runner": Annotated[
            str, typer.Argument(help="Its boot, the beginning of it, or its name.")
        ]
    },
)
