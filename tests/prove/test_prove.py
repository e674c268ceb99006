"""A small part of `./run prove`: some cells of the sweep on both databases, and that it finds what is wrong."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import cycle, islice

import apsw
import pytest
import structlog

from retoma import db
from tests.conftest import postgres_address, soaking
from tests.prove import files, progress
from tests.prove.__main__ import cells_of, ordered, table
from tests.prove.operations import SCENARIOS
from tests.prove.places import Place, name_of, names
from tests.prove.play import KNOBS, Play, Scenario
from tests.prove.processes import play_side_by_side
from tests.prove.progress import Hangs, until_done
from tests.prove.scenarios import STORIES, child
from tests.prove.sweep import (
    TRIES,
    Cell,
    Lab,
    PostgresLab,
    SqliteLab,
    open_lab,
    play_until_hit,
    silence_logs,
)

SAMPLE = 8  # cells on each database
SCENARIO = "submits"  # the shortest
# Cells that were red once, and what was cured.
RED_ONCE = {
    "sqlite": [
        "sqlite:shared:read/list_breakers#0:ioerr",  # a question was not asked again
        "sqlite:shared:read/BEGIN#2:readonly",
        "sqlite:intents:write/save_steps.7#0:interrupt",  # what was rolled back was not sent again
        "sqlite:shared:write/save_steps.2#0:nomem",
    ],
    "postgres": [
        # A clock that was not set was taken for set: what had just ended was too old to keep.
        "postgres:retires:write/SELECT_set_config_retoma_moved#0:deadlock",
    ],
}
# PostgreSQL's sequence numbers jobs; SQLite asks for the last number.
NOT_OF: dict[str, set[str]] = {"sqlite": set(), "postgres": {"last_job"}}
# What always ends well, wherever it happens; the others are tried by ./run prove.
HARMLESS = {
    "sqlite": ["busy", "full", "readonly", "locked", "cantopen", "emfile"],
    "postgres": ["cut_before", "serialization", "deadlock", "full", "standby", "emfile"],
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What a runner says when its database goes away is no news here."""
    silence_logs()
    yield
    structlog.reset_defaults()


@pytest.fixture(params=["sqlite", "postgres"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield SqliteLab(stack)
        else:
            yield PostgresLab(postgres_address(), stack)


def test_a_sample_of_all_cells_breaks_no_promise(lab):
    """F4 F5 F8: one statement or one operation on a file is spoiled; all is done in the end, once."""
    seed = int(os.environ.get("RETOMA_SEED", "7"))
    every = [*cells_of(lab, [SCENARIO], HARMLESS[lab.name])]
    choices = ordered(every, seed, every=False)[:SAMPLE]

    outcomes = [play_until_hit(lab, choice) for choice in choices]

    assert {} == {str(each.cell): each.wrong for each in outcomes if each.wrong}
    assert sum(each.hit for each in outcomes) > SAMPLE // 2, table(lab.name, choices, outcomes)


def test_cells_that_were_red_once_are_not(lab):
    outcomes = [lab.play(Cell.parse(text)) for text in RED_ONCE[lab.name]]

    assert {} == {str(each.cell): each.wrong for each in outcomes if each.wrong}


@pytest.mark.timeout(600)
def test_the_scenarios_send_every_statement_of_the_engine(lab):
    """What none of them sends is never spoiled."""
    left = {name.split(".")[0] for name in names(lab.name).values()} - NOT_OF[lab.name]

    for scenario in islice(cycle(SCENARIOS.values()), TRIES * len(SCENARIOS)):
        left -= {place.name.split(".")[0] for place, _ in lab.places(scenario)}
        if not left:
            break

    assert set() == left


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {each.name for each in STORIES}))
def test_a_scenario_that_nobody_spoils_ends_well(lab, name):
    """Each has statements that no other sends: what breaks it is found before the whole sweep is played."""
    nothing = Cell(lab.name, name, Place("write", "no such statement", 0), "full")

    outcome = lab.play(nothing)

    assert ([], False) == (outcome.wrong, outcome.hit)


async def test_a_question_whose_transaction_did_not_end_is_asked_again(sqlite_url):
    """It was asked within the old one, which SQLite refuses."""
    spoiler = files.Spoiler(lambda _: None)
    spoiler.arm(Place("read", "COMMIT", 0), files.Fault.BUSY)
    apsw.connection_hooks.append(spoiler.watch)
    database = db.open(sqlite_url)
    try:
        found = await database.read(lambda tx: tx.one(db.adhoc("SELECT count(*) FROM jobs")))
    finally:
        apsw.connection_hooks.remove(spoiler.watch)
        database.close()

    assert spoiler.hit
    assert (0,) == found


def test_no_lock_outlives_its_holder_whichever_lock_was_refused(tmp_path):
    """The laboratory once refused a release, which no kernel does: the lock stayed held, and each cell hung."""
    spoiler = files.Spoiler(lambda _: None)
    with ExitStack() as stack:
        vfs = files.FaultVFS(spoiler)
        stack.callback(vfs.unregister)
        stack.callback(files.SharedMemory(spoiler, vfs).close)
        one, other = [
            stack.enter_context(closing(apsw.Connection(str(tmp_path / "work.db"))))
            for _ in range(2)
        ]
        one.execute("PRAGMA journal_mode = wal; CREATE TABLE goods (n integer)").fetchall()
        refused = 0
        spoiler.hit = True
        while spoiler.hit:
            spoiler.arm(Place("file", "shm.shm-lock", refused), files.Fault.BUSY)
            with suppress(apsw.BusyError):
                one.execute("INSERT INTO goods VALUES (1)")
            spoiler.disarm()
            refused += spoiler.hit

            other.execute("INSERT INTO goods VALUES (2)")  # it does not wait for a lock

    assert refused >= 2


def test_a_program_that_does_a_thing_twice_is_found_out(monkeypatch):
    """The sweep can fail: this one submits without a key, and asks again where it had no answer."""

    async def forgetful(play: Play) -> None:
        play.job(child)
        await play.submit("child", "first", key=None)
        await play.run()

    monkeypatch.setitem(SCENARIOS, "forgetful", Scenario("forgetful", forgetful))
    with ExitStack() as stack:
        lab = PostgresLab(postgres_address(), stack)
        found = lab.play(Cell.parse("postgres:forgetful:write/submit_jobs#0:cut_after"))

    assert ["submissions: there are 2 jobs, 1 were submitted"] == found.wrong
    assert "Unsure" in found.refused[0]


class Acting:
    """A scenario that is done once somebody has looked so many times how far it is."""

    def __init__(self, looks: int) -> None:
        self._left = looks
        self._done = asyncio.Event()
        self.ended = ""

    async def act(self) -> None:
        try:
            await self._done.wait()
            self.ended = "done"
        except asyncio.CancelledError:
            self.ended = "canceled"
            raise

    async def gets_on(self) -> int:
        self._left -= 1
        if not self._left:
            self._done.set()
        return self._left

    async def stands_still(self) -> int:
        return max(2, await self.gets_on())


async def test_a_scenario_that_gets_on_has_the_time_it_needs_and_one_that_does_not_hangs():
    """A loaded machine once was a hang, after 30 s on the clock."""
    slow, stuck, endless = Acting(5), Acting(5), Acting(10**6)

    await until_done(slow.act(), slow.gets_on, still=0.01)
    with pytest.raises(Hangs, match=r"nothing got on for 0.01 s"):
        await until_done(stuck.act(), stuck.stands_still, still=0.01)
    with pytest.raises(Hangs, match=r"not done after 0.1 s"):
        await until_done(endless.act(), endless.gets_on, still=0.01, limit=0.1)

    assert ["done", "canceled", "canceled"] == [slow.ended, stuck.ended, endless.ended]


def test_a_scenario_that_hangs_is_found_out(lab, monkeypatch):
    """Its runner beats and asks for jobs, and nothing is recorded any more."""

    async def waits_for_ever(play: Play) -> None:
        play.job(child)
        await play.submit("child", "later", delay=3600)
        await play.app.run(**KNOBS)

    monkeypatch.setattr(progress, "STILL", 0.3)
    monkeypatch.setitem(SCENARIOS, "hangs", Scenario("hangs", waits_for_ever))
    found = lab.play(Cell(lab.name, "hangs", Place("write", "no such statement", 0), "full"))

    assert ["hangs: nothing got on for 0.3 s"] == [
        each for each in found.wrong if not each.startswith("open jobs: ")
    ]


def test_every_statement_has_a_name_and_every_fault_that_applies(lab):
    places = dict(lab.places(SCENARIOS[SCENARIO]))

    assert {"submit_keyed_jobs", "settle_jobs", "save_steps", "COMMIT"} <= {
        place.name.split(".")[0] for place in places
    }
    assert all(faults for faults in places.values())
    for place in places:
        assert place == Place.parse(str(place))


def test_a_statement_is_known_however_its_parameters_are_written():
    known = "SELECT value FROM meta WHERE name = 'database'"

    assert "SELECT_value" == name_of("postgres", known)
    assert "BEGIN_IMMEDIATE" == name_of("sqlite", "BEGIN IMMEDIATE")


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_every_statement_with_every_fault_breaks_no_promise(database):
    """The whole of it: each statement once with each fault that applies."""
    assert soaking()
    with open_lab(database) as lab:
        choices = ordered(cells_of(lab, SCENARIOS), seed=7, every=False)
    outcomes = [*play_side_by_side(database, choices, os.cpu_count() or 1)]

    print(table(database, choices, outcomes))
    assert {} == {str(each.cell): each.wrong for each in outcomes if each.wrong}
