"""Schedules: each tick once; missed ones are made up for by one run or by none."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from retoma import BadInput, Context, NotFound, Retoma, State
from retoma.db import Database, adhoc, moment
from retoma.engine import store
from retoma.engine.ops.leader_tasks import DutyLost, Fence
from retoma.engine.ops.schedules import tick
from retoma.engine.rules.cron import Cron
from retoma.engine.rules.errors import UnknownKind
from retoma.engine.store import Schedule, Term
from retoma.engine.testing import drain
from tests.clock import TestClock
from tests.engine.aids import boot, change, rows
from tests.engine.ops.test_leader_tasks import take

MINUTELY = Cron("* * * * *", "UTC")
MINUTE = timedelta(minutes=1)


def told(app: Retoma) -> list[str]:
    """A story that tells what it was given."""
    heard: list[str] = []

    @app.job
    async def report(ctx: Context, what: str) -> None:
        heard.append(what)

    return heard


async def look(database: Database) -> int:
    return await database.write(store.tick_schedules, verb="schedule")


async def now(database: Database) -> datetime:
    [(at,)] = await rows(database, "SELECT (SELECT clock())")
    found: datetime = moment(at)
    return found


async def at_ten_past(app: Retoma, test_clock: TestClock) -> Database:
    """Ready, at ten seconds past a minute: nothing ticks by itself while the test goes on."""
    await app.upgrade()
    database = app.connection.opened()
    test_clock.jump(0)  # on PostgreSQL: the schema is there now, and gets the clock of tests
    at = await now(database)
    test_clock.jump((70 - at.second - at.microsecond / 1e6) % 60)
    return await app.database()


async def ticks(database: Database, name: str = "minutely") -> list[datetime]:
    found = await rows(database, "SELECT schedule, at FROM ticks WHERE job IS NOT NULL")
    at = [moment(at) for schedule, at in found if schedule == name]
    return sorted(each for each in at if each is not None)


async def one(app: Retoma, name: str = "minutely") -> Schedule:
    [found] = [each for each in await app.schedules.list() if each.name == name]
    return found


async def test_a_declared_schedule_is_there_at_first_use_and_says_when_it_ticks(database_url):
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("nightly", "report", cron="0  3 * * *", payload="night")

        [found] = await app.schedules.list()

        plan = found.plan
        assert ("nightly", "report", 1, "report") == (
            found.name, plan.kind, plan.version, plan.queue,
        )  # fmt: skip
        assert ("0 3 * * *", "America/Sao_Paulo", '"night"', "one") == (
            plan.cron, plan.timezone, plan.payload, plan.missed,
        )  # fmt: skip
        at = await now(await app.database())
        assert Cron("0 3 * * *", "America/Sao_Paulo").after(at) == found.next_at
        assert (None, None, None) == (found.paused_at, found.last_at, found.last_job)


async def test_a_changed_declaration_changes_the_schedule_and_an_unchanged_one_nothing(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="old", timezone="UTC")
        first = await one(app)
        test_clock.jump(
            90
        )  # it is due: a new declaration of the same times must not pass it over
        async with Retoma(database_url) as same:
            told(same)
            same.schedule("minutely", "report", cron="* * * * *", payload="new", timezone="UTC")
            changed = await one(same)
        async with Retoma(database_url) as other:
            told(other)
            other.schedule(
                "minutely", "report", cron="0 0 1 1 *", payload="new", timezone="UTC"
            )
            moved = await one(other)
            again = Retoma(database_url)
            told(again)
            again.schedule(
                "minutely", "report", cron="0 0 1 1 *", payload="new", timezone="UTC"
            )
            await again.schedules.list()
            await again.close()

        assert (first.next_at, '"new"') == (changed.next_at, changed.plan.payload)
        assert "0 0 1 1 *" == moved.plan.cron
        assert moved.next_at > first.next_at + timedelta(days=1)
        declared = await rows(
            await app.database(), "SELECT 1 FROM audit WHERE verb = 'schedule.declared'"
        )
        assert 3 == len(declared)


async def test_the_zone_is_the_apps_the_environments_or_sao_paulos(database_url, monkeypatch):
    def zone(**how: str) -> str:
        return Retoma(database_url, **how).timezone  # type: ignore[arg-type]

    monkeypatch.delenv("RETOMA_TIMEZONE", raising=False)
    assert ("America/Sao_Paulo", "UTC") == (zone(), zone(timezone="UTC"))
    monkeypatch.setenv("RETOMA_TIMEZONE", "Europe/Lisbon")
    assert ("Europe/Lisbon", "UTC") == (zone(), zone(timezone="UTC"))


# --- ticking


async def test_a_tick_submits_one_job_however_often_one_looks(database_url, test_clock):
    async with Retoma(database_url) as app:
        heard = told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        database = await at_ten_past(app, test_clock)
        due = (await one(app)).next_at

        early = await look(database)
        test_clock.jump(60)
        late = [await look(database) for _ in range(5)]

        assert (0, [1, 0, 0, 0, 0]) == (early, late)
        assert [due] == await ticks(database)
        found = await one(app)
        assert (due, due + MINUTE) == (found.last_at, found.next_at)
        job = await app.get(found.last_job or 0)
        assert ('"tick"', f"minutely {due.isoformat()}") == (job.payload, job.correlation)
        await drain(app)
        assert ["tick"] == heard


async def test_however_many_look_at_once_a_tick_is_submitted_once(database_url, test_clock):
    """Without any duty: the row of the tick alone is enough."""
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        places = [await at_ten_past(app, test_clock), await other.database()] * 4
        test_clock.jump(60)

        made = await asyncio.gather(*(look(place) for place in places))

        assert 1 == sum(made)
        assert {State.WAITING: 1} == await app.insights.counts()


async def test_a_tick_that_was_submitted_is_not_submitted_again_though_its_schedule_forgot(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        database = await at_ten_past(app, test_clock)
        [(before,)] = await rows(database, "SELECT next_at FROM schedules")
        test_clock.jump(60)
        await look(database)
        set_back = adhoc("UPDATE schedules SET next_at = :at")
        await database.write(lambda tx: tx.run(set_back, at=before), verb="test")

        assert 0 == await look(database)
        assert 1 == len(await ticks(database))


async def test_ticks_that_are_late_by_less_than_two_leases_each_run(database_url, test_clock):
    """A holder that died is followed within a lease: nothing it left undone was missed."""
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        database = await at_ten_past(app, test_clock)
        due = (await one(app)).next_at
        test_clock.jump(120)  # ten seconds past the second tick

        assert 2 == await look(database)
        assert [due, due + MINUTE] == await ticks(database)


@pytest.mark.parametrize(("missed", "runs"), [("one", 3), ("skip", 2)])
async def test_of_the_ticks_that_were_missed_one_runs_or_none(
    database_url, test_clock, missed, runs
):
    """An hour without anybody: 58 missed, the last two still in time."""
    async with Retoma(database_url) as app:
        told(app)
        app.schedule(
            "minutely",
            "report",
            cron="* * * * *",
            payload="tick",
            timezone="UTC",
            missed=missed,
        )
        database = await at_ten_past(app, test_clock)
        due = (await one(app)).next_at
        test_clock.jump(3660)

        made = await look(database)

        last = due + timedelta(minutes=60)
        expected = [last - 2 * MINUTE, last - MINUTE, last][-runs:]
        assert (runs, expected) == (made, await ticks(database))
        assert 0 == await look(database)
        assert last + MINUTE == (await one(app)).next_at


async def test_a_year_of_missed_ticks_costs_no_more_than_a_minute_of_them(
    database_url, test_clock, monkeypatch
):
    looked_at: list[datetime] = []
    ticks_after = Cron._ticks

    def counted(cron: Cron, after: datetime) -> Iterator[datetime]:
        for each in ticks_after(cron, after):
            looked_at.append(each)
            yield each

    async with Retoma(database_url) as app:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        database = await at_ten_past(app, test_clock)
        test_clock.jump(366 * 86_400)
        monkeypatch.setattr(Cron, "_ticks", counted)

        assert 3 == await look(database)
        assert 0 < len(looked_at) < 20


async def test_a_schedule_nobody_here_can_read_keeps_no_other_from_ticking(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        told(app)
        for name in ("aaa", "minutely"):
            app.schedule(name, "report", cron="* * * * *", payload="tick", timezone="UTC")
        database = await at_ten_past(app, test_clock)
        await change(database, "UPDATE schedules SET timezone = 'Mars/X' WHERE name = 'aaa'")
        test_clock.jump(60)

        assert 1 == await look(database)
        assert 0 == await look(database)
        assert ([], 1) == (await ticks(database, "aaa"), len(await ticks(database)))


async def test_one_who_has_lost_the_duty_ticks_nothing(database_url, test_clock):
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        database = await at_ten_past(app, test_clock)
        await boot(database, "a")
        await boot(database, "b")
        await take(database, "a")
        await change(database, "UPDATE runners SET state = 'lost' WHERE boot = 'a'")
        await take(database, "b")
        test_clock.jump(60)

        with pytest.raises(DutyLost):
            await tick(Fence(database, Term("schedule", "a", 1)))
        assert {} == await app.insights.counts()

        left = await tick(Fence(database, Term("schedule", "b", 2)))
        assert {State.WAITING: 1} == await app.insights.counts()
        assert 0 < left <= 60


async def test_a_runner_ticks_and_runs_what_is_due_before_it_says_it_is_idle(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        heard = told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        await at_ten_past(app, test_clock)
        test_clock.jump(60)

        await drain(app)

        assert ["tick"] == heard


# --- what a person does


async def test_paused_it_does_not_tick_and_unpaused_it_does_not_make_up_for_it(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        database = await at_ten_past(app, test_clock)

        paused, again = (
            await app.schedules.pause("minutely", actor="ana"),
            await app.schedules.pause("minutely", actor="bia"),
        )
        test_clock.jump(600)
        silent = await look(database)
        went_on = await app.schedules.unpause("minutely", actor="ana")
        await app.schedules.unpause("minutely", actor="ana")

        assert paused.paused_at is not None
        assert (paused.paused_at, 0, None) == (again.paused_at, silent, went_on.paused_at)
        assert 0 == await look(database)
        assert MINUTELY.after(await now(database)) == went_on.next_at
        assert [("schedule.paused", "ana"), ("schedule.unpaused", "ana")] == await rows(
            database,
            "SELECT verb, actor FROM audit WHERE verb LIKE 'schedule.%paused' ORDER BY id",
        )


async def test_run_now_is_one_run_beside_the_ticks(database_url, test_clock):
    async with Retoma(database_url) as app, Retoma(database_url) as desk:
        heard = told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        before = await one(app)

        job = await desk.schedules.run("minutely")  # from a process that knows no kind at all

        after = await one(app)
        assert (before.next_at, job.id) == (after.next_at, after.last_job)
        await drain(app)
        assert ["tick"] == heard


async def test_a_removed_schedule_ticks_no_more(database_url, test_clock):
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("minutely", "report", cron="* * * * *", payload="tick", timezone="UTC")
        await app.schedules.remove("minutely")
        test_clock.jump(60)

        assert 0 == await look(await app.database())
        assert [] == await app.schedules.list()


# --- bad input


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        (
            {"cron": "every day"},
            "schedule nightly: 'every day' is no cron line: it has 2 fields",
        ),
        ({"cron": "99 3 * * *"}, "schedule nightly: '99 3 . . .' is no cron line: bad minute"),
        ({"timezone": "Mars/X"}, "schedule nightly: no time zone is called 'Mars/X'"),
        ({"missed": "all"}, "'one'.*'skip'.*not 'all'"),
        ({"payload": object()}, "object"),
    ],
)
async def test_nonsense_is_refused_with_what_is_wrong_and_nothing_is_declared(
    database_url, how, complaint
):
    async with Retoma(database_url) as app:
        told(app)

        with pytest.raises((BadInput, ValueError), match=complaint):
            app.schedule("nightly", "report", **{"cron": "0 3 * * *", "payload": "x"} | how)

        assert [] == await app.schedules.list()


async def test_a_strange_name_an_unknown_kind_and_a_second_one_are_refused(database_url):
    async with Retoma(database_url) as app:
        told(app)
        app.schedule("nightly", "report", cron="0 3 * * *", payload="x")

        for name in ("", "x" * 101, "a\nb", None):
            with pytest.raises(BadInput, match="printable name"):
                app.schedule(name, "report", cron="0 3 * * *", payload="x")  # type: ignore[arg-type]
        with pytest.raises(UnknownKind):
            app.schedule("other", "nothing", cron="0 3 * * *")
        with pytest.raises(BadInput, match="already a schedule nightly"):
            app.schedule("nightly", "report", cron="0 4 * * *", payload="x")

        assert ["0 3 * * *"] == [each.plan.cron for each in await app.schedules.list()]


@pytest.mark.parametrize("verb", ["pause", "unpause", "run", "remove"])
async def test_an_unknown_schedule_is_not_found(database_url, verb):
    async with Retoma(database_url) as app:
        with pytest.raises(NotFound, match="there is no schedule 'gone'"):
            await getattr(app.schedules, verb)("gone")

        assert [] == await rows(await app.database(), "SELECT 1 FROM audit")
