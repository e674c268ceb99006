"""Every row of the document's tables of statuses, by real services that come to it.

2.2.5 (sessions), 2.4.4 (scrapes), 3.2 (the writer); and services that are killed around the POSTs of an
orchestrator. One world for all of it.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import httpx2
import pytest

from retoma.db.rows import read_json
from tests.apps.ads.around import Around, Asked, House, around, days, house
from tests.apps.ads.run_orchestrator import SENT
from tests.clock import TestClock
from tests.engine.aids import eventually
from tests.programs.processes import KEYED, PATIENCE, Program

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

NOBODY = (date(2024, 1, 1), date(2024, 1, 2), ("pt",))  # the library begins a year later
TURNS = 20
PATIENT = 4.0  # seconds for all that needs no backoff
SLOW = {"trouble": "slow", "seconds": 0.4, "path": "/", "times": None}
USUAL = {"timeout_session": 180, "timeout_job": 6000}
SHORT = 1  # second: a deadline that is meant
LONG = (date(2025, 6, 1), date(2025, 6, 30), ("pt", "en"))
SPOILT = (
    date(2025, 7, 1),
    date(2025, 7, 31),
    ("pt", "en"),
)  # so many that three are not too many


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    with around(tmp_path_factory.mktemp("world")) as made:
        yield made


@dataclass(slots=True)
class Rows:
    """One house, in which one row after the other comes to pass."""

    found: House
    clock: TestClock
    seen: int = 0  # lines of the log that belong to rows before
    day: int = 0

    def next_day(self) -> Asked:
        self.day += 1
        return days(self.day, month=4)[-1]

    async def until_rest(self) -> None:
        """Backoffs are not waited for; nobody dies of it, and no deadline is missed that is not meant."""
        for _ in range(TURNS):
            try:
                await eventually(self.found.at_rest, within=PATIENT)
            except TimeoutError:
                await self.found.booted("one")
                await self.found.travel(self.clock, "one", hops=1)
            else:
                return
        raise AssertionError(f"never at rest: {await self.told()}")

    async def told(self) -> list[tuple[str, Any]]:
        """What the log has to say of this row."""
        rows = await self.found.rows("SELECT event, details FROM ads_logs ORDER BY id")
        return [(event, read_json(details)) for event, details in rows[self.seen :]]

    async def codes(self) -> set[str]:
        return {
            str(told["error_code"]) for _, told in await self.told() if "error_code" in told
        }

    async def set(self, knob: str, value: float) -> None:
        await self.found.app.knobs.set(f"ads.{knob}", value)

    async def next(self) -> None:
        self.found.world.peace()
        self.seen += len(await self.told())


def ask(program: Program, method: str, path: str) -> httpx2.Response:
    return httpx2.request(method, f"{program.origin}{path}", headers=KEYED, trust_env=False)


async def worker_of(found: House, mission: str) -> Program:
    [(url,)] = await found.rows(
        "SELECT w.url FROM missions m JOIN workers w ON w.id = m.worker_id WHERE m.id = :id",
        id=mission,
    )
    [program] = [each for each in found.world.workers if each.origin == url]
    return program


# — while it goes on: what somebody else does to the services —

Meddle = Callable[[House, str], Awaitable[None]]


async def nothing(found: House, mission: str) -> None: ...


async def scraping(found: House, mission: str) -> str:
    await found.until(mission, "worker_job_id IS NOT NULL")
    return str((await found.mission(mission))["worker_job_id"])


async def end_its_session(found: House, mission: str) -> None:
    await scraping(found, mission)
    ask(await worker_of(found, mission), "DELETE", "/session").raise_for_status()


async def cancel_its_scrape(found: House, mission: str) -> None:
    job = await scraping(found, mission)
    worker = await worker_of(found, mission)
    ask(worker, "POST", f"/scrape/{job}/cancel").raise_for_status()


async def open_the_site(found: House, mission: str) -> None:
    await scraping(found, mission)
    found.world.peace()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: how it comes to that, and what follows."""

    table: str
    status: str
    code: str | None = None  # that is told on the way
    ends: str = "completed"
    session: str | None = None  # how the next sessions misbehave
    scrape: str | None = None
    times: int = 1
    site: dict[str, Any] | None = None
    knob: str | None = None  # a deadline that is short until it was missed
    mission: Asked | None = None
    meddle: Meddle = nothing


EVERY = (
    Row("2.2.5", "initializing, connecting, authenticating, warming_up, ready"),
    Row("2.2.5", "stuck", "ERROR102", session="stuck"),
    Row("2.2.5", "disconnected", "ERROR103", session="disconnected"),
    Row("2.2.5", "terminated", "ERROR100", mission=LONG, meddle=end_its_session),
    Row(
        *("2.2.5", "timeout", "ERROR101"),
        session="never_ready",
        knob="timeout_session",
    ),
    Row(
        *("2.4.4", "pending, queued, running"),
        site={"trouble": "status", "status": 429, "retry_after": 1, "path": "/", "times": 4},
        meddle=open_the_site,
    ),
    Row("2.4.4", "completed"),
    Row("2.4.4", "empty", mission=NOBODY),
    Row("2.4.4", "failed", "ERROR200", scrape="fails"),
    Row("2.4.4", "failed to the last", "ERROR203", "failed", scrape="fails", times=3),
    Row("2.4.4", "cancelled", "ERROR201", mission=LONG, meddle=cancel_its_scrape),
    Row("2.4.4", "paused", "ERROR200", scrape="paused"),
    Row("2.4.4", "timeout", "ERROR202", site=SLOW, knob="timeout_job", mission=LONG),
    Row("2.4.4", "gone", "ERROR200", scrape="vanishes"),
    Row("2.4.4", "an id that is none", "ERROR200", scrape="hostile_id"),
    Row("3.2", "processing, completed", mission=LONG),
    Row("3.2", "partial", scrape="bad_rows", mission=SPOILT),
)


async def test_what_every_status_leads_to(database_url, tmp_path, world, test_clock):
    wrong = []
    async with house(database_url, world, tmp_path) as found:
        rows = Rows(found, test_clock)
        found.orchestrate("one")
        for row in EVERY:
            try:
                wrong += [(row.table, row.status, each) for each in await tried(rows, row)]
            except (AssertionError, TimeoutError) as error:
                wrong.append((row.table, row.status, repr(error)))
                break
        problems = [*await found.problems(), *await found.unrotated()]
        wrong += [("all", "rows", each) for each in problems]
    assert not wrong, "\n".join(map(str, wrong))


async def tried(rows: Rows, row: Row) -> list[str]:
    """What did not follow from this row as it should."""
    found, world = rows.found, rows.found.world
    for worker in world.workers:
        if row.session or row.scrape:
            world.misbehave(worker, session=row.session, scrape=row.scrape, times=row.times)
    if row.site:
        world.trouble(**row.site)
    if row.knob:
        await rows.set(row.knob, SHORT)
    expected = dict(found.expected)
    [mission] = await found.add(row.mission or rows.next_day())
    await row.meddle(found, mission)
    if row.knob:
        await eventually(lambda: told_of(rows, row.code), within=PATIENCE)
        await rows.set(row.knob, USUAL[row.knob])
        world.peace()
    await rows.until_rest()
    ends, codes = (await found.mission(mission))["status"], await rows.codes()
    if row.ends == "failed" or row.scrape == "bad_rows":
        found.expected = expected
    await rows.next()
    wrong = [] if ends == row.ends else [f"it ended {ends}: {codes}"]
    if row.code is not None and row.code not in codes:
        wrong.append(f"{row.code} is not told, but {codes}")
    return wrong


async def told_of(rows: Rows, code: str | None) -> bool:
    return code in await rows.codes()


# — services that die around a POST —


@pytest.mark.parametrize("point", ["request", "answer"])
async def test_m1_a_service_killed_around_a_post_loses_nothing(
    database_url, tmp_path, world, test_clock, point
):
    """Right before it is asked, and right after it has answered."""
    async with house(database_url, world, tmp_path) as found:
        rows = Rows(found, test_clock)
        for post in SENT:
            victim = world.writer if post == "process" else world.workers[0]
            assert victim.child is not None
            found.orchestrate("one", f"{post}.{point}={victim.child.pid}")
            cancels = post == "cancel"
            expected = dict(found.expected)
            [mission] = await found.add(LONG if cancels else rows.next_day())
            if cancels:
                await found.until(mission, "worker_job_id IS NOT NULL")
                await found.cancel(mission)
            await eventually(lambda program=victim: is_dead(program), within=PATIENCE)  # type: ignore[misc]
            victim.kill()
            victim.start()
            await rows.until_rest()
            found.kill("one")
            ended = (await found.mission(mission))["status"]
            assert ("canceled" if cancels else "completed") == ended, post
            if cancels:
                found.expected = expected
            assert [] == await found.problems(), post


async def is_dead(program: Program) -> bool:
    return program.child is None or program.child.poll() is not None
