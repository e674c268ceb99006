"""Runners: who runs jobs, and asking one of them to leave."""

from retoma.engine.query import RunnerSeen
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.engine.store import Drained
from retoma.library import Retoma
from retoma.words import say

__all__ = ["GONE", "Drained", "RunnerSeen"]

GONE = ("gone", "lost")
SHOWN = 8  # characters of a boot


async def list_runners(app: Retoma, *, every: bool = False) -> list[RunnerSeen]:
    """Who runs jobs: slots in use, last beat, kinds it knows."""
    return [each for each in await app.runners.list() if every or each.state not in GONE]


async def drain_runner(app: Retoma, runner: str, *, actor: str) -> Drained:
    """Ask a runner to leave as on SIGTERM; its jobs are finished or given back."""
    return await app.runners.drain(_boot(runner, await app.runners.list()), actor=actor)


def _boot(text: str, seen: list[RunnerSeen]) -> str:
    """The one runner somebody means; of those called alike, the one that has not left."""
    named = [each for each in seen if text in (each.boot, each.name)]
    found = named or [each for each in seen if text and each.boot.startswith(text)]
    found = [each for each in found if each.state not in GONE] or found
    if not found:
        raise NotFound(say("there is no runner {boot}", boot=text))
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
