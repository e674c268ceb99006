"""Rounds through real processes: each match is stored whole or FAILED with its page, whoever is killed.

The site is a process of its own, and its log the witness: after the layout has changed and the parser was
switched, not one request is made for what was kept.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from retoma.apps.matches import store
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO
from tests.apps.matches.around import Around, Beside, around, beside
from tests.programs.processes import PATIENCE

BOTH = "modern,classic"
MATCHES = 10  # of a round
# Of the transaction that stores a match: after match, events, statistics, task; at which point.
DEATHS = (*"1234", "share.before_commit", "share.after_commit")
TROUBLES: tuple[dict[str, Any], ...] = (
    {"trouble": "status", "status": 503},
    {"trouble": "status", "status": 500, "times": 4},  # more than one call puts up with
    {"trouble": "status", "status": 429, "retry_after": 1},
    {"trouble": "cut", "times": 3},
    {"trouble": "slow", "seconds": 0.1},
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    with around(tmp_path_factory.mktemp("matches")) as made:
        yield made


async def test_a_process_killed_at_any_insert_leaves_no_partial_match(
    database_url, tmp_path, world, test_clock
):
    """Show 1, R1 H-39: -9 after each statement, before and after the commit; each over another match."""
    async with beside(database_url, world, tmp_path, test_clock) as found:
        await found.start_rounds([1])
        met: set[int] = set()
        for death in DEATHS:
            found.start(f"dies at {death}", slots=1, crash=death, spared=met)
            await found.died(f"dies at {death}")
            assert [] == await found.rows(PARTIAL)
            [task] = {
                task
                for (task,) in await found.rows(
                    "SELECT t.id FROM match_tasks t JOIN jobs j ON j.id = t.job"
                    " WHERE j.state = 'running'"
                )
            }
            # It alone was at work; what the one before it had left was stored first.
            left = [("share.after_commit" == death,)]
            assert left == await found.rows(
                "SELECT partida IS NOT NULL FROM match_tasks WHERE id = :task", task=task
            )
            assert task not in met
            met.add(task)

        found.start("last")
        await found.until(found.ended)
        assert {"DONE": MATCHES} == await found.statuses()
        assert [] == await found.problems(world.season.round(LEAGUE, 1))
        assert (MATCHES, len(DEATHS)) == (await found.stored(), len(met))


async def test_rounds_end_whole_or_with_evidence_and_replay_brings_the_rest(
    database_url, tmp_path, world, test_clock
):
    """Show 2 in small: three rounds, five sorts of trouble, three kills, another layout half way."""
    async with beside(database_url, world, tmp_path, test_clock) as found:
        await endure(found, rounds=3, slots=6)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_season_ends_whole_or_with_evidence_and_replay_brings_the_rest(
    database_url, tmp_path
):
    """Show 2: 38 rounds, in the time of every day, of a site on which chance brings trouble."""
    with around(tmp_path, faults=0.05) as world:
        async with beside(database_url, world, tmp_path) as found:
            await endure(found, rounds=38, slots=20)


async def endure(found: Beside, *, rounds: int, slots: int) -> None:
    world, numbers = found.world, range(1, rounds + 1)
    patience = PATIENCE if found.clock is not None else 20 * PATIENCE
    truth = [match for number in numbers for match in world.season.round(LEAGUE, number)]
    every = len(truth)
    await found.start_rounds(numbers)

    world.hold("rodada", after=1)
    found.start("finds", slots=slots)
    met = [await found.kill("finds")]
    world.hold("jogo")
    found.start("finds the rest", slots=slots)
    await found.until(found.discovered, patience=patience)
    met.append(await found.kill("finds the rest"))

    if found.clock is not None:
        for match, trouble in zip(Random(7).sample(truth, 5), TROUBLES, strict=True):
            world.trouble(**{**trouble, "path": match.path})
    world.hold("jogo", after=every // 2)
    found.start("stores", slots=slots)

    async def half() -> bool:
        return world.open() > 0 and await found.stored() >= every // 2 - 2 * slots

    await found.until(half, patience=patience)
    world.draw("modern")
    met.append(await found.kill("stores"))
    found.start("last", slots=slots)
    await found.until(found.ended, patience=patience)

    stood = await found.statuses()
    assert all(met), "a kill met no request on its way"
    assert stood["FAILED"] > 0
    assert every == stood.total()
    assert [] == await found.problems(truth)
    asked, stored = found.asked(), await found.stored()

    shown = await found.replayed(BOTH, apply=False)
    await found.app.knobs.set("matches.layouts", BOTH, actor=WHO)
    done = await found.replayed(BOTH, apply=True)
    assert asked == found.asked(), "a replay asked the site"
    assert len(shown) == len(done) == sum(each.promoted for each in done)
    assert stored + len(done) == await found.stored()
    failed = (await found.statuses())["FAILED"]  # whom nobody has answered at all

    await found.app.write(lambda tx: store.runs.retry_failed(tx, actor=WHO))
    await found.until(found.ended, patience=patience)
    lines = await found.lines()
    told = f"{every} matches: {dict(stood)}, then {len(done)} by replay, {failed} tried again"
    print(f"{told}; requests on their way at each kill: {met}; {len(lines)} log lines")
    if found.clock is not None:
        assert {"DONE": every} == await found.statuses()
        assert [(rounds,)] == await found.rows(
            "SELECT count(*) FROM match_runs WHERE completed_at IS NOT NULL"
        )
    assert [] == await found.problems(truth)
    events = {line["event"] for line in lines}
    assert {"match.stored", "match.failed", "job.buried"} <= events
    assert found.looks
