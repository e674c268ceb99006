"""E23: the same seed, the same inputs: the same event sequence on SQLite and on PostgreSQL."""

import asyncio
from random import Random
from typing import Any

import pytest

from retoma import (
    Context,
    IllegalMove,
    Park,
    Permanent,
    Retoma,
    Retry,
    Skip,
    Snooze,
    State,
    Transient,
)
from retoma.engine.testing import FakeClock, drain
from tests.model.test_machine import slack

ACTS = 25
OUTSIDE = ("type", "stack", "sha256")  # of an error: where it was raised, in whose file


async def test_e23_the_same_seed_gives_the_same_events_on_both_databases(
    tmp_path, postgres_url, seed
):
    sqlite = await live(slack(f"sqlite:///{tmp_path / 'work.db'}"), seed)
    postgres = await live(postgres_url, seed)

    assert sqlite.keys() == postgres.keys()
    for job in sqlite:
        assert sqlite[job] == postgres[job], f"job {job} of seed {seed}"
    told = {each[1] for timeline in sqlite.values() for each in timeline[:-3]}
    assert {"submitted", "claimed", "step_saved"} <= told


async def test_another_seed_gives_other_events(tmp_path):
    first = await live(slack(f"sqlite:///{tmp_path / 'a.db'}"), 1)
    second = await live(slack(f"sqlite:///{tmp_path / 'b.db'}"), 2)

    assert first != second


@pytest.fixture(
    params=[1, 2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 40))]
)
def seed(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


async def live(url: str, seed: int) -> dict[int, list[Any]]:
    """One life of an app, decided by its seed alone; every timeline, without ids and times."""
    chance = Random(seed)
    async with Retoma(url, clock=FakeClock(), rng=Random(seed)) as app:
        tell(app)
        for _ in range(ACTS):
            await act(app, chance)
        await drain(app, slots=1)
        for job in reversed(await app.jobs(limit=200)):
            if job.state in (State.DEAD, State.PARKED) and chance.random() < 0.5:
                await (app.retry if job.ended else app.resume)(job.id)
        await drain(app, slots=1)
        # One batch after another: the number of a job is the same, whatever its id.
        jobs = sorted(job.id for job in await app.jobs(limit=200))
        return {n: await timeline(app, id_) for n, id_ in enumerate(jobs)}


def tell(app: Retoma) -> None:
    """A story that does what its payload says, one thing each time it is told."""

    @app.job(retry=Retry(attempts=3, base=60, cap=600))
    async def story(ctx: Context, acts: list[str]) -> Any:
        for n, name in enumerate(acts):
            await ctx.step(f"step {n}", spell, name)
            if ctx.epoch != n + 1:
                continue
            match name:
                case "snooze":
                    return Snooze(300)
                case "skip":
                    return Skip("seen")
                case "park":
                    return Park("look")
                case "fail":
                    raise Transient("503", code="ERROR502", retry_after=90)
                case "break":
                    raise ValueError(name)
                case "give up":
                    raise Permanent("404", code="GONE")
                case _:
                    continue
        await ctx.progress(1.0, "through")
        return await ctx.each("each", acts, spell, concurrency=1, key=str)

    async def spell(name: str) -> str:
        return name.upper()


async def act(app: Retoma, chance: Random) -> None:
    """One thing somebody does from outside."""
    words = ("go", "go", "snooze", "skip", "park", "fail", "fail", "break", "give up")
    payload = [chance.choice(words) for _ in range(chance.randint(0, 4))]
    payload = list(dict.fromkeys(payload))
    match chance.choice(("submit", "submit", "many", "keyed", "cancel", "drain", "late")):
        case "submit":
            await app.submit("story", payload, priority=chance.randint(-2, 2))
        case "many":
            await app.submit_many("story", [payload] * chance.randint(1, 3))
        case "keyed":
            await app.submit("story", ["go"], key=chance.choice("abc"))
        case "late":
            await app.submit("story", payload, delay=chance.randint(1, 10) * 100, deadline="2h")
        case "cancel":
            jobs = sorted(job.id for job in await app.jobs(limit=200))
            if jobs:
                try:
                    await app.cancel(chance.choice(jobs))
                except IllegalMove:
                    await asyncio.sleep(0)
        case "drain":
            await drain(app, slots=1)


async def timeline(app: Retoma, job: int) -> list[Any]:
    boots: dict[str | None, int] = {}
    told = []
    for event in await app.events(job):
        details = event.details if isinstance(event.details, dict) else {}
        kept = {key: value for key, value in details.items() if key not in OUTSIDE}
        told.append((event.seq, str(event.type), event.epoch, kept))
        boots.setdefault(event.actor, len(boots))
    found = await app.get(job)
    return [
        *told,
        (-1, str(found.state), found.reason, found.code, found.failures, found.result),
        [(each.epoch, each.ended) for each in await app.attempts(job)],
        [(each.name, each.key, each.version) for each in await app.steps(job)],
        len(boots),
    ]
