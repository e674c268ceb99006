"""`retoma demo` is real, and its account would not hide a broken promise."""

import json
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from retoma.cli import world
from retoma.cli.account import Told, problems
from retoma.cli.demo_jobs import Mood, Ran, orders
from retoma.cli.exits import Exit, Stop
from retoma.engine.events import EventType
from retoma.engine.insights import Event, StepSeen
from retoma.engine.job import Job
from retoma.engine.states import State
from tests.cli.conftest import PATIENCE, command, started, wait_for

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def told(state: State = State.DONE, committed: int = 2, seqs: tuple[int, ...] = (1, 2)) -> Told:
    """One job that committed its step `send` under an epoch."""
    return Told(
        Job(id=1, kind="report", state=state),
        [Event(seq, None, EventType.SUBMITTED, NOON, "me", None) for seq in seqs],
        [StepSeen("send", 1, "", "saved", 1, committed, NOON, "null")],
    )


def ran(*epochs: int) -> list[Ran]:
    return [Ran(1, epoch, "send") for epoch in epochs]


def test_a_step_that_ran_before_its_runner_died_may_run_again():
    assert [] == problems(1, [told()], ran(1, 2))


@pytest.mark.parametrize(
    ("submitted", "facts", "ledger", "complaint"),
    [
        (1, told(), ran(2, 3), "ran again after its commit"),
        (1, told(), ran(2, 2), "ran 2 times"),
        (1, told(), ran(1), "ran 0 times"),
        (2, told(), ran(2), "2 jobs were submitted and 1 are there"),
        (1, told(state=State.RUNNING), ran(2), "has not ended"),
        (1, told(seqs=(1, 3)), ran(2), "gap"),
    ],
)
def test_a_broken_promise_is_seen(submitted, facts, ledger, complaint):
    (found,) = problems(submitted, [facts], ledger)

    assert complaint in found


def test_a_seed_makes_a_world_and_two_orders_of_it_are_hopeless():
    first, same, other = (orders(Random(seed), 50, 0.1) for seed in (1, 1, 2))

    assert first == same
    assert first != other
    assert {Mood.GONE: 1, Mood.BROKEN: 1} == {
        mood: sum(order.mood is mood for order in first) for mood in (Mood.GONE, Mood.BROKEN)
    }


@pytest.mark.timeout(300)
def test_the_demo_kills_a_runner_and_every_promise_holds(tmp_path):
    done = subprocess.run(
        command("demo", "--fast", "--json"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENCE,
    )

    assert 0 == done.returncode, done.stderr
    account = json.loads(done.stdout)
    assert account["ok"]
    assert account["submitted"] == account["done"] + 2
    assert {"exhausted", "permanent"} == {each["reason"] for each in account["dead_letters"]}
    assert 0 < account["taken_over"]
    assert 0 < account["retried"]
    assert account["steps_committed"] <= account["steps_run"]
    assert any("killed" in event for event in account["events"])
    ads = account["ads"]
    assert (3, 3) == (ads["missions"], ads["completed"])
    assert 0 < ads["stored"]
    quotes = account["quotes"]
    assert (24, 24) == (quotes["quotes"], quotes["done"])
    assert 24 <= quotes["paid_calls"]
    assert quotes["paid_again"] <= quotes["taken_over"]
    documents = account["documents"]
    assert (12, 11, {"corrupt": 1}) == (
        *(documents["documents"], documents["labelled"], documents["explained"]),
    )
    assert documents["paid_again"] <= documents["taken_over"]
    matches = account["matches"]
    assert (10, 10, 0) == (
        *(matches["matches"], matches["scraped"] + matches["replayed"]),
        matches["asked_again"],
    )
    texts = account["embeddings"]
    assert (24, 240, 2) == (texts["documents"], texts["chunks"], texts["found"])
    assert texts["vectors"] < texts["chunks"]


def test_an_interrupted_demo_leaves_no_process_behind(tmp_path):
    demo = started("demo", folder=tmp_path)
    logs = tmp_path / ".retoma" / "demo"
    wait_for(lambda: len(list(logs.glob("*.log"))) == 2, "two runners start")
    runners = children_of(demo.pid)
    assert 2 <= len(runners)  # and programs of the ads world

    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=PATIENCE)

    assert 130 == demo.returncode
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in runners), "they are gone")


def test_up_goes_on_where_it_stopped_and_ctrl_c_drains_it(tmp_path):
    for time_around in (1, 2):
        up = started("up", folder=tmp_path)
        assert up.stdout is not None
        before = []
        for line in up.stdout:
            before.append(line)
            if f"batch {time_around}:" in line:
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


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]
