"""Something to be done to many jobs: how many first, then now or by a job of the house."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from fastapi import Response

from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.states import State
from retoma.services.batches import Batch
from retoma.services.bulk import (
    FEW,
    MOVABLE,
    Asked,
    BatchAction,
    Command,
    Order,
    act_on_batch,
    carry_out_now,
    order_of,
    submit_order,
)
from retoma.services.jobs import Search
from retoma.web.house import House
from retoma.web.problems import Refusal
from retoma.web.replay import written
from retoma.web.visit import Visit
from retoma.web.wire import Done, LeftShown, Moved

CHUNK = 200  # jobs in one transaction


async def do_to_ids(
    house: House, command: Command, ids: Sequence[int], *, dry_run: bool
) -> Done:
    """To those that somebody ticked."""
    wanted = sorted(set(ids))
    if dry_run:
        return Done(dry_run=True, matching=len(wanted), exact=True)
    moved, left = 0, []
    for begin in range(0, len(wanted), CHUNK):
        done = await house.retoma.bulk.apply(
            command, wanted[begin : begin + CHUNK], offset=moved
        )
        moved += done.moved
        left += [LeftShown(job=each.job, state=each.state) for each in done.left]
    return Done(dry_run=False, matching=len(wanted), exact=True, moved=moved, left=left)


async def do_where(
    house: House,
    command: Command,
    search: Search,
    ask: Asked | None,
    visit: Visit,
    response: Response,
    *,
    dry_run: bool,
    most: int | None = None,
) -> Done:
    """To all that are so, or the newest so many of them."""
    narrowed = _movable(command, search)
    count = await house.retoma.count(narrowed)
    n = count.n if most is None else min(count.n, most)
    exact = count.exact or n == most
    if dry_run:
        return Done(dry_run=True, matching=n, exact=exact)
    if ask is None and exact and n <= FEW:
        done = await carry_out_now(house.retoma, command, narrowed, most)
        return Done(dry_run=False, matching=n, exact=True, moved=done.moved)
    order = order_of(command, narrowed, most)

    def show(job: int) -> Done:
        return Done(dry_run=False, matching=n, exact=exact, job=job)

    shown, _ = await written(house, ask, lambda tx: submit_order(tx, order, visit), show, Done)
    _accepted(response, shown.job)
    return shown


def _movable(command: Command, search: Search) -> Search:
    """A verb that moves jobs from one state alone need not meet the others."""
    [*states] = MOVABLE[command.verb]
    if search.state is None and not search.letters and len(states) == 1:
        return replace(search, state=states[0])
    return search


async def do_to_batch(
    house: House,
    batch: Batch,
    order: Order,
    visit: Visit,
    response: Response,
) -> Moved:
    """One verb on all jobs of a batch."""
    return moved_shown(await act_on_batch(house.retoma, batch, order, visit), response)


def moved_shown(done: BatchAction, response: Response) -> Moved:
    """Answer with what was moved; with 202 and the job's address where a job moves it."""
    if done.job is not None:
        _accepted(response, done.job)
    return Moved.model_validate(done)


def _accepted(response: Response, job: int | None) -> None:
    response.status_code = 202
    response.headers["Location"] = f"/api/jobs/{job}"


@asynccontextmanager
async def standing(house: House, job: int, running: str = "lease_valid") -> AsyncIterator[None]:
    """Refuse a move that cannot be, and say where the job stands: a running one has a runner with a good lease."""
    try:
        yield
    except IllegalMove as error:
        state = (await house.retoma.get(job)).state
        code = running if state is State.RUNNING else "illegal_move"
        raise Refusal(code, error.args[0], more={"state": state}) from error
