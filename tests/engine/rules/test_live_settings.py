"""A knob is what the environment says, else what somebody has set, else its default; and nothing its
rule refuses. What is called live is taken up by a runner that runs."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable

import pytest

from retoma import (
    BadInput,
    Context,
    IllegalMove,
    NotFound,
    Permanent,
    Retoma,
    State,
    Transaction,
)
from retoma.engine.ops import alerts, retention
from retoma.engine.ops.leader_tasks import Fence
from retoma.engine.ops.retention import Keep, Retention
from retoma.engine.rules.live_settings import Declared, Knob, KnobType, Source
from retoma.engine.store import Term
from retoma.engine.store.alerts import Alert
from retoma.engine.testing import drain
from tests.engine.aids import boot, eventually, rows, running
from tests.engine.ops.test_leader_tasks import take

DAY = 86_400.0
LIMIT = Knob("session_limit", 5, "int", least=1, most=100, why="Sessions at once.")
RETRIES = Knob("max_retries", 3, "int", least=0, most=20)
POLL = Knob("polling_job", 2.0, "duration", least=0.1, most=60)
SITE = Knob("site", "", "text", most=10)
MODE = Knob("mode", "slow", "choice", choices=("slow", "quick"))
GOES = Knob("goes", True, "bool")
SHARE = Knob("share", 0.5, "float", least=0, most=1)
UNTIL = Knob("until", None, "duration", least=1)


@pytest.mark.parametrize(
    ("knob", "given", "expected"),
    [
        (LIMIT, 7, 7),
        (LIMIT, "7", 7),
        (LIMIT, 7.0, 7),
        (POLL, "1m", 60.0),
        (POLL, "250ms", 0.25),
        (POLL, "2", 2.0),
        (POLL, 3, 3.0),
        (SITE, "", ""),
        (SITE, "none", "none"),
        (MODE, "quick", "quick"),
        (GOES, "off", False),
        (GOES, False, False),
        (SHARE, "0.25", 0.25),
        (UNTIL, None, None),
        (UNTIL, "none", None),
        (UNTIL, "", None),
    ],
)
def test_a_value_is_read_from_json_and_from_text(knob, given, expected):
    read = knob.read(given)

    assert (expected, type(expected)) == (read, type(read))


@pytest.mark.parametrize(
    ("knob", "given", "rule"),
    [
        (LIMIT, 0, "a whole number from 1 to 100"),
        (LIMIT, 101, "a whole number from 1 to 100"),
        (LIMIT, True, "a whole number"),
        (LIMIT, 1.5, "a whole number"),
        (LIMIT, None, "a whole number"),
        (LIMIT, "", "a whole number"),
        (LIMIT, "9" * 400, "a whole number"),
        (LIMIT, [1], "a whole number"),
        (RETRIES, 10**6, "a whole number from 0 to 20"),
        (RETRIES, 10**400, "a whole number from 0 to 20"),
        (POLL, 0, "a length of time from 0.1 s to 60 s"),
        (POLL, "-1s", "a length of time"),
        (POLL, math.nan, "a length of time"),
        (POLL, {}, "a length of time"),
        (UNTIL, "1000000d", "a length of time"),
        (SITE, "x" * 11, "text of 0 to 10 characters"),
        (SITE, "a\x00b", "text"),
        (SITE, 7, "text"),
        (MODE, "fast", "one of slow, quick"),
        (MODE, "", "one of slow, quick"),
        (GOES, "perhaps", "true or false"),
        (GOES, 1, "true or false"),
        (SHARE, math.inf, "a number from 0 to 1"),
        (SHARE, "1e999", "a number from 0 to 1"),
        (SHARE, 10**400, "a number from 0 to 1"),
    ],
)
def test_row_35_what_breaks_the_rule_is_refused_with_the_rule(knob, given, rule):
    with pytest.raises(BadInput, match=f"{knob.name} is {rule}.*nothing was changed"):
        knob.read(given)


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "Limit", "default": 1, "type": "int"},
        {"name": "x" * 51, "default": 1, "type": "int"},
        {"name": "limit", "default": 1, "type": "number"},
        {"name": "limit", "default": 0, "type": "int", "least": 1},
        {"name": "limit", "default": "c", "type": "choice", "choices": ["a", "b"]},
    ],
)
def test_a_knob_that_cannot_be_is_refused_where_it_is_declared(bad):
    with pytest.raises(BadInput):
        Knob(**bad)


def test_a_length_of_time_is_kept_in_seconds():
    knob = Knob("polling", "1m", "duration")

    assert (60.0, "s") == (knob.default, knob.unit)


def test_every_type_is_read_by_something():
    made = {KnobType.CHOICE: MODE, KnobType.TEXT: SITE}
    for each in KnobType:
        knob = made.get(each) or Knob("x", None, each)
        assert str(knob.rule)


async def test_a_knob_is_set_for_all_processes_and_reset_and_both_are_written_down(
    database_url,
):
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        await app.upgrade()
        for each in (app, other):
            each.knobs.declare("ads", [LIMIT, MODE])
        first = await app.knobs.get("ads.session_limit")

        changed = await app.knobs.set("ads.session_limit", "8", actor="ana")
        seen = await other.knobs.get("ads.session_limit")
        listed = {each.name: each.value for each in await other.knobs.all()}
        await app.knobs.set("ads.session_limit", 9, actor="rui")
        back = await app.knobs.reset("ads.session_limit", actor="ana")
        again = await app.knobs.reset("ads.session_limit", actor="ana")

        assert (5, Source.DEFAULT, None) == (first.value, first.source, first.changed_by)
        assert (8, Source.DATABASE, "ana") == (
            changed.value,
            changed.source,
            changed.changed_by,
        )
        assert (8, 5, changed.changed_at) == (seen.value, seen.default, seen.changed_at)
        assert (8, "slow", 10) == (
            listed["ads.session_limit"],
            listed["ads.mode"],
            listed["alert_stuck"],
        )
        assert (5, Source.DEFAULT) == (back.value, back.source) == (again.value, again.source)
        told = await rows(
            await app.database(),
            "SELECT actor, verb, subject, details FROM audit WHERE verb LIKE 'knob.%' ORDER BY id",
        )
        assert [
            ("ana", "knob.set", {"from": 5, "to": 8}),
            ("rui", "knob.set", {"from": 8, "to": 9}),
            ("ana", "knob.reset", {"from": 9, "to": 5}),
        ] == [(actor, verb, json.loads(details)) for actor, verb, _, details in told]
        assert {"ads.session_limit"} == {subject for _, _, subject, _ in told}


async def test_what_is_refused_changes_nothing(database_url):
    async with Retoma(database_url) as app:
        await app.upgrade()
        app.knobs.declare("ads", [LIMIT, RETRIES])
        app.knobs.fix({"alert_stuck": 3})

        for name, value, error in (
            ("ads.session_limit", 0, BadInput),
            ("ads.max_retries", 10**6, BadInput),
            ("ads.nothing", 1, NotFound),
            ("session_limit", 1, NotFound),
            ("keep_done", "1s", BadInput),
            ("alert_stuck", 5, IllegalMove),
        ):
            with pytest.raises(error):
                await app.knobs.set(name, value)
        with pytest.raises(IllegalMove):
            await app.knobs.reset("alert_stuck")
        with pytest.raises(NotFound):
            await app.knobs.get("ads.nothing")

        fixed = await app.knobs.get("alert_stuck")
        database = await app.database()
        assert (3, Source.ENVIRONMENT, True) == (fixed.value, fixed.source, fixed.fixed)
        assert [] == await rows(database, "SELECT name FROM knobs")
        assert [] == await rows(database, "SELECT 1 FROM audit WHERE verb LIKE 'knob.%'")


async def test_what_only_goes_together_is_never_set_apart(database_url):
    """Two who meet: each would go with what the other found, and not with what it leaves."""
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        await app.upgrade()
        await app.knobs.set("keep_events", "30d")

        met = await asyncio.gather(
            app.knobs.set("keep_events", "2d"),
            other.knobs.set("keep_done", "20d"),
            return_exceptions=True,
        )
        with pytest.raises(BadInput, match="at least as long"):
            await app.knobs.set("keep_dead", "40d")
        unrelated = await app.knobs.set("alert_stuck", 5)

        assert 1 == sum(isinstance(each, BadInput) for each in met), met
        values = {each.name: each.value for each in await app.knobs.all()}
        Keep(done=values["keep_done"], dead=values["keep_dead"], events=values["keep_events"])
        assert 5 == unrelated.value


async def test_a_decision_and_its_knob_are_in_one_transaction(database_url):
    async with Retoma(database_url) as app:
        await app.upgrade()
        app.knobs.declare("ads", [LIMIT])
        found = []

        def decide(tx: Transaction) -> None:
            found.append(tx.knob("ads.session_limit"))

        await app.write(decide)
        await app.knobs.set("ads.session_limit", 8)
        await app.write(decide)

        assert [5, 8] == found
        with pytest.raises(NotFound):
            await app.write(lambda tx: tx.knob("ads.nothing"))


async def test_what_an_older_rule_let_in_counts_for_nothing(database_url):
    async with Retoma(database_url) as app:
        await app.upgrade()
        app.knobs.declare("ads", [LIMIT])
        await app.knobs.set("ads.session_limit", 80)
        app.knobs.declare("ads", [Knob("session_limit", 5, "int", least=1, most=10)])

        seen = await app.knobs.get("ads.session_limit")

        assert (5, Source.DEFAULT) == (seen.value, seen.source)


# — taken up by a runner that runs —


async def test_a_running_runner_takes_up_when_to_raise_an_alert(database_url, test_clock):
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        for name in ("old", "young"):
            await app.breakers.declare(name)
        await app.knobs.set("alert_breaker_open", "20d")
        await app.breakers.open("old", "down")
        test_clock.jump(15 * DAY)
        await app.breakers.open("young", "down")
        test_clock.jump(6 * DAY)

        async def raised() -> list[Alert]:
            test_clock.jump(alerts.EVERY + 1)
            return await app.alerts.list()

        async def both() -> list[Alert]:
            found = await raised()
            return found if len(found) == 2 else []

        async with running(app, lease=1e6):
            first = await eventually(raised)
            await app.knobs.set("alert_breaker_open", "90s")
            young, _ = await eventually(both)

        assert ["old"] == [each.subject for each in first]
        assert "breaker young has been open for 1.5 minutes: down" == alerts.sentence(young)


async def test_a_running_runner_takes_up_how_long_things_stay(database_url, test_clock):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, dies: bool) -> None:
            if dies:
                raise Permanent("no good")

        await app.upgrade()
        test_clock.jump(0)
        await app.submit_many(work, [False, True])
        await drain(app)
        test_clock.jump(DAY)
        app.knobs.fix({"keep_dead": 3_600.0})  # as the environment would

        def none_is(state: State) -> Callable[[], Awaitable[bool]]:
            async def ask() -> bool:
                test_clock.jump(retention.LOOK + 1)
                return not await app.jobs(state=state)

            return ask

        async with running(app, lease=1e6):
            await eventually(none_is(State.DEAD))
            assert [State.DONE] == [each.state for each in await app.jobs()]
            await app.knobs.set("keep_done", "12h")
            await eventually(none_is(State.DONE))


async def test_what_a_runner_was_given_holds_over_what_people_set(database_url, test_clock):
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        await app.knobs.set("keep_done", "12h")
        await app.knobs.set("keep_events", "20h")
        database = await app.database()

        async def now(keep: Keep, **fixed: float) -> Keep | None:
            return await database.read(Retention(keep, "me", fixed=fixed).now)

        assert Keep(done=43_200.0, events=72_000.0) == await now(Keep())
        assert Keep(done=7.0, events=72_000.0, reuse=5.0) == await now(
            Keep(done=7.0, reuse=5.0)
        )
        assert Keep(done=43_200.0, events=3e9) == await now(Keep(), keep_events=3e9)
        assert None is await now(Keep(events=60.0)), "they contradict each other: nothing goes"


async def test_a_contradiction_deletes_nothing_and_is_over_when_it_is_repaired(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        await app.knobs.set("keep_done", "12h")
        database = await app.database()
        await boot(database, "me", knows=[])
        term = Term("retention", "me", (await take(database, "me", ["retention"]))["retention"])
        await app.write(lambda tx: tx.tell("y", "z"))
        test_clock.jump(DAY)

        one = Retention(Keep(events=3_600.0), "me")
        await one.chore(Fence(database, term))
        kept = await rows(database, "SELECT 1 FROM audit WHERE verb = 'y'")
        await app.knobs.reset("keep_done")
        await one.chore(Fence(database, term))

        assert 1 == len(kept)
        assert [] == await rows(database, "SELECT 1 FROM audit WHERE verb = 'y'")


def test_the_environment_fixes_only_what_it_names():
    declared = Declared([LIMIT], fixed={"session_limit": 2, "other": 3})

    assert {"session_limit": 2} == declared.fixed
    with pytest.raises(NotFound):
        declared.fix({"other": 3})
