"""`retoma runners`: who runs jobs, and asking one of them to leave."""

from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.query import RunnerSeen
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.engine.store import Drained
from retoma.library import Retoma
from retoma.words import say, speak

GONE = ("gone", "lost")
SHOWN = 8  # characters of a boot


def list_(database: str | None, as_json: bool, *, every: bool) -> None:
    found = ask(database, lambda app: app.runners())
    shown = [each for each in found if every or each.state not in GONE]
    if as_json:
        print_json(shown)
        return
    if not shown:
        console().print(speak("no runner is alive: `retoma runner --app package.module:app`"))
        return
    page = table(
        speak("name"),
        speak("state"),
        speak("slots in use"),
        speak("last beat"),
        speak("version"),
        speak("host"),
        speak("pid"),
        speak("knows"),
        speak("boot"),
    )
    for each in shown:
        page.add_row(
            clean(each.name),
            _state(each),
            f"{each.held}/{each.slots}",
            at(each.beat_at),
            clean(each.version),
            clean(each.host.partition(" ")[0]),
            str(each.pid),
            ", ".join(each.knows),
            each.boot[:SHOWN],
        )
    console().print(page)


def _state(runner: RunnerSeen) -> str:
    if runner.drain_at is not None and runner.state == "alive":
        return speak("alive, asked to leave")
    if runner.trouble:
        return f"{runner.state} ({clean(runner.trouble)})"
    if runner.expired and runner.state not in GONE:
        return speak("silent, its lease is over")
    return runner.state


def drain(database: str | None, as_json: bool, runner: str) -> None:
    async def meant(app: Retoma) -> Drained:
        return await app.drain_runner(_boot(runner, await app.runners()), actor=ACTOR)

    told = ask(database, meant)
    if as_json:
        print_json(told)
        return
    print(
        speak(
            "{name} {boot} was asked to leave: it finishes or gives back its jobs first",
            name=clean(told.name),
            boot=told.boot[:SHOWN],
        )
    )


def _boot(text: str, seen: list[RunnerSeen]) -> str:
    """The one runner somebody means; of those called alike, the one that has not left."""
    named = [each for each in seen if text in (each.boot, each.name)]
    found = named or [each for each in seen if text and each.boot.startswith(text)]
    found = [each for each in found if each.state not in GONE] or found
    if not found:
        raise NotFound(say("there is no runner {boot}", boot=clean(text)))
    if len(found) > 1:
        raise BadInput(
            say(
                "{n} runners are meant by {text!r}: say which by its boot, {boots}",
                n=len(found),
                text=text,
                boots=", ".join(each.boot[:SHOWN] for each in found[:10]),
            )
        )
    return found[0].boot
