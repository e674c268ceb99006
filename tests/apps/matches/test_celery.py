"""Rounds over Celery and Redis, the document's level 2, end as they do by a runner: Show 3, E26."""

import json
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from retoma.apps.matches import store
from retoma.apps.matches.model import MATCH
from retoma.apps.matches.sandbox import Odd
from retoma.apps.matches.tasks import hint_of
from retoma.db.rows import read_time
from retoma.engine.ports import Clock
from tests.apps.matches import fleet
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, House, house
from tests.apps.matches.around import FIELDS, OF_MATCHES
from tests.apps.workers import worker
from tests.databases import Rooms, migrate
from tests.engine.aids import eventually
from tests.lines import whole_lines

ENDS = """SELECT round, match_key, status, error_code, attempts FROM scrape_tasks
ORDER BY round, match_key"""
ODD = (Odd.SCORE_100, Odd.ALIEN)  # the first matches of each round


@pytest.mark.timeout(300)
async def test_e26_rounds_over_celery_end_as_they_do_by_a_runner(
    postgres_url, redis_url, tmp_path, rooms
):
    """E26 H-45: on the document's own make; the soak below takes both, tests/dispatch the rest."""
    await compare(postgres_url, redis_url, tmp_path, rooms, rounds=2, concurrency=2)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_e26_a_season_over_celery_ends_as_it_does_by_a_runner(
    database_url, redis_url, tmp_path, rooms
):
    await compare(database_url, redis_url, tmp_path, rooms, rounds=38, concurrency=4)


async def compare(
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    rooms: Rooms,
    *,
    rounds: int,
    concurrency: int,
) -> None:
    """Two matches of each round cannot be read, one is refused for a while; some hints are doubled."""
    queue, numbers = f"matches-{secrets.token_hex(4)}", range(1, rounds + 1)
    async with house(database_url, clock=Clock()) as there:
        dispatcher, scrape_match = fleet.export(fleet.make_celery(redis_url), there.app, queue)
        await begin(there, numbers)
        told = {
            "url": database_url,
            "port": urlsplit(there.settings.matches_url).port,
            "broker": redis_url,
            "queue": queue,
        }

        async def found() -> bool:
            return bool(await there.rows("SELECT 1 FROM match_tasks LIMIT 1"))

        async def ended() -> bool:
            return not await there.rows("SELECT 1 FROM scrape_jobs WHERE open = 1 LIMIT 1")

        with worker(fleet, told, tmp_path, concurrency) as log:
            await eventually(found, within=60)
            for (task,) in await there.rows("SELECT id FROM match_tasks"):
                scrape_match.delay(task)  # a second hint of what was hinted
            scrape_match.delay(10**9)  # nobody's
            await eventually(ended, within=60 + 20 * rounds)
        dispatcher._disconnect()
        dispatcher._sender.close()
        by_celery, matches = await there.rows(ENDS), await told_of(there)
        assert [] == await there.rows(PARTIAL)
        named = lines(log, await there.rows(OF_MATCHES))

    url = f"sqlite:///{tmp_path / 'other.db'}"
    migrate(url, rooms)
    async with house(url) as other:
        await begin(other, numbers)
        await other.drained()
        by_runner = await other.rows(ENDS)
        assert matches == await told_of(other)

    print(f"{rounds} rounds over Celery, {len(named)} log lines: {by_celery[:2]} …")
    assert by_runner == by_celery
    assert rounds * (10 - len(ODD)) == len(matches)
    assert {"match.stored", "match.failed", "job.buried"} <= {line["event"] for line in named}


async def begin(there: House, numbers: range) -> None:
    for number in numbers:
        matches = there.truth(number)
        for match, odd in zip(matches, ODD, strict=False):
            there.site.world.make_odd(LEAGUE, match.key, odd)
        there.ill(matches[len(ODD)].path, 503, times=1)
        of = there.of(number)
        await there.app.write(lambda tx, of=of: store.runs.start(tx, of, actor=WHO))  # type: ignore[misc]


async def told_of(there: House) -> dict[str, Any]:
    """What is stored, without what depends on who did it and when."""
    passing = ("id", "url", "stored_by", "stored_at")
    return {
        key: {name: value for name, value in each.items() if name not in passing}
        | {"kickoff": read_time(each["kickoff"])}
        for key, each in (await there.matches()).items()
    }


def lines(log: Path, jobs: list[Any]) -> list[dict[str, Any]]:
    """What workers have said of matches: each line has the document's three fields."""
    text = log.read_text()
    assert "Traceback" not in text, text[-3000:]
    said = [json.loads(line) for line in whole_lines(log) if line.startswith("{")]
    of = {job: (run, key) for job, run, key in jobs}
    named = [line for line in said if line.get("job") in of]
    assert [] == [line for line in named if any(name not in line for name in FIELDS)]
    assert all((line["job_id"], line["match_id"]) == of[line["job"]] for line in named)
    return named


async def test_a_task_is_a_hint_of_its_job_and_nobodys_is_none(database_url):
    """H-45 H-47: by its number; an address is nothing that the broker may bring."""
    async with house(database_url) as there:
        run = await there.scraped()
        task = next(iter((await there.tasks(run)).values()))
        database = await there.app.database()

        assert (MATCH, task["job"]) == await database.read(lambda tx: hint_of(tx, task["id"]))
        assert await database.read(lambda tx: hint_of(tx, 10**9)) is None
