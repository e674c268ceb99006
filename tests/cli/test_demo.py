"""`retoma demo` is real, and its account would not hide a broken promise."""

import asyncio
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from retoma import Retoma
from retoma.cli.demo import _Demo
from retoma.cli.stage import Stage
from retoma.console.exits import Exit, Stop, cause_of
from retoma.console.processes import Held
from retoma.demo import account, world
from retoma.demo.account import Account, Life, Row, Seen, Witness
from retoma.demo.board import Bar, Board
from retoma.demo.boxed_world import HERE
from retoma.engine.rules.states import State
from retoma.words import say
from tests.cli.conftest import PATIENCE, command, started, wait_for

NAMES = ("ads", "documents", "embeddings", "matches", "quotes")
# Two documents: one has its label, one is corrupt; one answer was paid for, and is kept.
WELL = Witness(
    wanted={"A": "contract", "B": "corrupt"},
    found=[("A", "contract"), ("B", "corrupt")],
    paid=Counter({"A": 1}),
    kept=1,
)
ENDED = Bar(2, {State.DONE: 1, State.DEAD: 1})
ROW = Row(submitted=2, done=1, dead_letters={"corrupt": 1}, paid_calls=1)
LIFE = Life(job=1, state=State.DONE, generation=1, events=5, last=5, done=1)


def test_what_went_well_is_no_problem():
    assert [] == account.of_things("documents", WELL)
    assert [] == account.of_numbers("documents", ROW, ENDED, WELL)
    assert [] == account.of_lives([LIFE])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"found": [("A", "contract")]}, "B was lost"),
        ({"found": [*WELL.found, ("A", "contract")]}, "A is there 2 times"),
        ({"found": [*WELL.found, ("C", "letter")]}, "nobody has asked for C"),
        ({"found": [("A", "letter"), ("B", "corrupt")]}, "A ended with letter"),
        ({"paid": Counter({"A": 2})}, "1 answers were paid for again, and only 0"),
        ({"paid": Counter({"A": 1, "B": 1})}, "paid for 2 answers, and 1 are kept"),
        ({"kept": 0}, "paid for 1 answers, and 0 are kept"),
        ({"also": ["a page was asked for again"]}, "a page was asked for again"),
    ],
)
def test_a_thing_that_was_lost_or_doubled_is_seen(change, complaint):
    (found,) = account.of_things("documents", replace(WELL, **change))

    assert complaint in found


def test_an_answer_on_its_way_to_who_was_killed_may_be_paid_for_again():
    again = replace(WELL, paid=Counter({"A": 2}), may_repeat=1)

    assert [] == account.of_things("documents", again)
    assert 1 == again.paid_again


@pytest.mark.parametrize(
    ("row", "bar", "complaint"),
    [
        (ROW, replace(ENDED, wanted=3), "3 were submitted and 2 are there"),
        (ROW, replace(ENDED, wanted=1), "1 were submitted and 2 are there"),
        (ROW, replace(ENDED, counts={State.DONE: 1, State.WAITING: 1}), "1 have not ended"),
        (replace(ROW, dead_letters={}), ENDED, "1 are not done, and 0 have a reason"),
        (replace(ROW, paid_calls=3), ENDED, "3 paid calls are not 1 answers"),
    ],
)
def test_numbers_that_do_not_agree_are_seen(row, bar, complaint):
    found = account.of_numbers("documents", row, bar, WELL)

    assert any(complaint in each for each in found), found


@pytest.mark.parametrize(
    ("life", "complaint"),
    [
        (replace(LIFE, state=State.RUNNING), "still held"),
        (replace(LIFE, last=6), "gap"),
        (replace(LIFE, done=2), "done 2 times"),
    ],
)
def test_a_broken_timeline_is_seen(life, complaint):
    (found,) = account.of_lives([life])

    assert complaint in found


def test_a_row_counts_all_kinds_of_its_application_and_no_others():
    seen = Seen(
        retried={"documents.document": 2, "quotes.quote": 8},
        recovered={"documents.document": 3},
        dead={"documents.document": {"corrupt": 1}, "quotes.quote": {"no_price": 1}},
        read_back={"documents.document": 4},
        refused={"documents.tidy": 1},
        lives=[],
    )
    kinds = ["documents.document", "documents.tidy"]

    row = account.row_of(seen, kinds, ENDED, replace(WELL, reused=5, retried=1))

    assert row == replace(ROW, retried=3, recovered=3, refused_writes=1, saved_calls=9)


def test_the_total_is_the_sum_and_reasons_are_added_up():
    told = Account(
        applications={"documents": ROW, "quotes": replace(ROW, dead_letters={"no_price": 2})},
        seconds=1.0,
        takeover_seconds=0.5,
        events=[],
        problems=[],
    )

    assert 4 == told.total.submitted
    assert {"corrupt": 1, "no_price": 2} == told.total.dead_letters
    assert 3 == told.total.dead


def test_a_terminal_has_a_bar_for_each_application_and_a_pipe_has_lines():
    screen, pipe = io.StringIO(), io.StringIO()
    for out, terminal in ((screen, True), (pipe, False)):
        console = Console(file=out, force_terminal=terminal, width=100, highlight=False)
        with Board(console) as board:
            board.look({"Quotes": Bar(4, {State.DONE: 1, State.RUNNING: 2}), "Ads": Bar(2)})
            board.tell(say("{name} killed", name="runner 2"))
        assert 1 / 6 == board.share

    drawn = screen.getvalue()
    assert all(
        word in drawn for word in ("Quotes", "━", "1 of 4", "2 running", "0 of 2", "killed")
    )
    assert 1 == len(pipe.getvalue().splitlines())
    assert "\x1b" not in pipe.getvalue()


def test_nobody_sees_a_quiet_board_and_it_keeps_what_happened(capsys):
    with Board(None) as board:
        board.look({"Quotes": Bar(1)})
        board.tell(say("runner 2 killed"))

    assert "" == capsys.readouterr().out
    assert "runner 2 killed" in board.events[0]


@pytest.mark.timeout(420)
def test_the_demo_kills_a_runner_and_a_worker_and_every_promise_holds(tmp_path):
    done = subprocess.run(
        command("demo", "--fast", "--json"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=6 * PATIENCE,
    )

    assert 0 == done.returncode, done.stderr
    told = json.loads(done.stdout)
    rows, total = told["applications"], told["total"]
    assert (True, []) == (told["ok"], told["problems"])
    assert list(NAMES) == sorted(rows)
    assert (3, 24, 12, 10, 24) == (
        *(rows[name]["submitted"] for name in ("ads", "quotes", "documents", "matches")),
        rows["embeddings"]["submitted"],
    )
    assert total["submitted"] == total["done"] + 1
    assert {"corrupt": 1} == rows["documents"]["dead_letters"]
    assert total["submitted"] == sum(row["submitted"] for row in rows.values())
    assert 0 < total["recovered"]
    assert 0 < total["retried"]
    assert 0 < rows["embeddings"]["saved_calls"]
    assert 24 <= rows["quotes"]["paid_calls"]
    said = "\n".join(told["events"])
    assert "jobs taken over in" in said
    assert "worker-1 killed" in said
    assert "worker-1 is back" in said
    assert "the site has another layout" in said


@pytest.mark.soak
@pytest.mark.timeout(420)
def test_a_runner_that_froze_wakes_to_jobs_that_are_anothers(tmp_path):
    done = subprocess.run(
        command("demo", "--json"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=6 * PATIENCE,
    )

    assert 0 == done.returncode, done.stderr
    told = json.loads(done.stdout)
    said = "\n".join(told["events"])
    assert 742 == told["total"]["submitted"]
    assert re.search(r"runner \d froze, \d+ jobs in its hands", said)
    assert re.search(r"runner \d woke after [\d.]+ s and let go", said)


async def test_a_runner_may_be_started_again_while_another_is_frozen(tmp_path):
    class Runner:
        """It was told to freeze and to go on; it holds nothing."""

        pid = 0

        def __init__(self) -> None:
            self.told: list[str] = []
            self.frozen = asyncio.Event()

        def freeze(self) -> None:
            self.told.append("freeze")
            self.frozen.set()

        def thaw(self) -> None:
            self.told.append("thaw")

    async with Retoma(f"sqlite:///{tmp_path}/work.db") as app:
        alive = {"runner 1": Runner()}
        first = alive["runner 1"]
        stage = SimpleNamespace(app=app, fleet=SimpleNamespace(alive=alive), board=Board(None))
        demo = _Demo(cast(Stage, stage))

        async def start_another() -> None:
            await first.frozen.wait()
            alive["runner 2"] = Runner()
            demo._over = True

        found, _ = await asyncio.gather(demo._one_frozen_at_work(), start_another())

    assert found is None
    assert ["freeze", "thaw"] == first.told


def test_a_demo_whose_reader_leaves_ends_and_says_nothing(tmp_path):
    demo = started("demo", "--fast", folder=tmp_path)
    assert demo.stdout is not None
    assert demo.stderr is not None
    demo.stdout.readline()
    demo.stdout.close()

    with demo.stderr:
        assert "" == demo.stderr.read()
    assert 141 == demo.wait(PATIENCE)
    wait_for(lambda: not at_work_in(tmp_path), "its programs are gone")


def test_a_port_that_is_held_is_nobodys_but_ours():
    with socket.create_server((HERE, 0)) as taken, socket.socket() as anothers:
        held = Held(HERE, taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            anothers.bind((HERE, held.port))
        with socket.create_server((HERE, held.port)) as ours:
            held.close()
            assert ours.getsockname() != taken.getsockname()


# Before the first program listens, and when proxies have had children of their own.
@pytest.mark.parametrize("at_once", [2, 14])
def test_an_interrupted_demo_leaves_no_process_behind(tmp_path, at_once):
    demo = started("demo", folder=tmp_path)
    wait_for(lambda: len(at_work_in(tmp_path)) > at_once, "its programs start")

    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=PATIENCE)

    assert 130 == demo.returncode
    wait_for(lambda: not at_work_in(tmp_path), "they are gone")


# Stands for a runner that is stopped in the middle of a write: no other process can write until it goes on.
HOLDER = """
import fcntl, sys
lock = open(sys.argv[1] + "-turn")
fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""
INTERRUPTED = """
import asyncio, sys
from asyncio.subprocess import PIPE
from retoma.cli.stage import Stage
from retoma.console.exits import guarded
from retoma.console.processes import RunnerProcess
from retoma.demo import world
from retoma.demo.board import Board

async def play(place):
    stage = Stage(place, [], Board(None))
    async with stage.opened():
        await stage.app.write(lambda _: None)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", sys.argv[1], str(place.folder / "work.db"),
            stdin=PIPE, stdout=PIPE, start_new_session=True,
        )
        await process.stdout.readline()
        stage.fleet.alive["runner 9"] = frozen = RunnerProcess("runner 9", process)
        frozen.freeze()
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(stage.app.write(lambda _: None))
            await asyncio.sleep(0.5)
            print("frozen", flush=True)

def run():
    with world.opened("demo", slots=1, anew=True) as place:
        asyncio.run(play(place))

guarded(run)
"""


def test_ctrl_c_ends_the_demo_while_a_frozen_runner_holds_the_database(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, HOLDER],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        assert "frozen\n" == demo.stdout.readline()
        demo.send_signal(signal.SIGINT)
        try:
            assert 130 == demo.wait(PATIENCE / 4)
        finally:
            demo.kill()


@pytest.mark.timeout(300)
def test_up_goes_on_where_it_stopped_and_ctrl_c_drains_it(tmp_path):
    for awaited in ("quotes: a lote of 40", "of 40 go on"):
        up = started("up", folder=tmp_path)
        assert up.stdout is not None
        before = []
        for line in up.stdout:
            before.append(line)
            if awaited in line:
                break
        assert any("/enter/retoma_link_" in line for line in before)
        up.send_signal(signal.SIGINT)
        out, err = up.communicate(timeout=PATIENCE)

        assert 0 == up.returncode, out + err
        assert "every runner has left" in out


def test_two_demos_in_one_folder_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with (
        world.opened("demo", slots=1, anew=True),
        pytest.raises(Stop, match="already running") as stop,
        world.opened("demo", slots=1, anew=True),
    ):
        pass

    assert Exit.TEMPORARY == stop.value.code


def test_a_world_that_ends_removes_the_temp_folders_of_its_killed_programs(
    tmp_path, monkeypatch
):
    """The demo kills some with kill -9; the last of them was swept by nobody."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with world.opened("demo", slots=1, anew=True):
        killed = subprocess.run(
            [sys.executable, "-c", DIES],
            env=os.environ | {"TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        left = Path(killed.stdout.strip())
        assert left.is_relative_to(tmp_path)
        assert left.is_dir()

    assert not left.exists()


DIES = """
import os, signal
from retoma.engine.isolation.scratch import scratch

print(scratch(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def at_work_in(folder: Path) -> list[int]:
    """Every process that was started there, whoever its parent is by now."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (each / "cwd").readlink() == folder:
                found.append(int(each.name))
    return found


def test_an_error_among_several_tasks_is_told_itself():
    stop, other = Stop(Exit.UNAVAILABLE, "amber did not come up"), ValueError("another")

    wrapped = ExceptionGroup("tasks", [other, ExceptionGroup("tasks", [stop])])

    assert stop is cause_of(wrapped)
    assert other is cause_of(other)
    alone = ExceptionGroup("tasks", [other])
    assert other is cause_of(alone)
