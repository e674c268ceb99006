"""`retoma demo`: a batch at work, a runner killed in the middle, and a checked account of it.

The runners are started before anything else is imported: they boot while this process reads on.
"""

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from retoma.cli import world
from retoma.cli.exits import Exit, Stop
from retoma.cli.processes import RunnerProcess
from retoma.cli.world import World
from retoma.words import say

if TYPE_CHECKING:
    from retoma.cli.account import Account


@dataclass(frozen=True, slots=True)
class Size:
    """How large a demo is."""

    jobs: int
    pace: float  # seconds of a step, about
    slots: int  # of each runner


NORMAL = Size(jobs=300, pace=0.25, slots=14)
FAST = Size(jobs=120, pace=0.04, slots=14)


def run(*, fast: bool, as_json: bool, seed: int) -> None:
    size = FAST if fast else NORMAL
    with world.opened("demo", slots=size.slots, anew=True) as place:
        account = asyncio.run(_demo(place, size, seed, quiet=as_json))
    _tell(account, place, as_json=as_json)
    if account.problems:
        raise Stop(
            Exit.FAILED,
            say("the demo broke a promise: {problems}", problems="; ".join(account.problems)),
        )


async def _demo(place: World, size: Size, seed: int, *, quiet: bool) -> "Account":
    runners: list[RunnerProcess] = []
    try:
        for name in ("runner 1", "runner 2"):
            runners.append(await place.start(name))  # noqa: PERF401 — each at once in the list
        from retoma.cli.board import board_for
        from retoma.cli.performance import perform, world_of

        wanted = world_of(seed, size.jobs, size.pace)
        return await perform(place, wanted, runners, board_for(quiet=quiet))
    finally:
        for runner in runners:
            runner.kill()
            await runner.ended()


def _tell(account: "Account", place: World, *, as_json: bool) -> None:
    from retoma.cli.account import print_account
    from retoma.cli.desk import print_json

    if as_json:
        print_json({"ok": not account.problems, **asdict(account)})
    else:
        print_account(account, place)
