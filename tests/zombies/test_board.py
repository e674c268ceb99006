"""The board of zombies: its judge sees what it is there to see, and its page says what came out."""

import json
import subprocess

import pytest

from bench.zombies.director import Played, Times, play
from bench.zombies.judge import Observed, Seen, judge, summarize
from bench.zombies.ledger import EFFECT, START, Ledger
from bench.zombies.page import BEGIN, END, Row, cell, write_section
from bench.zombies.scenarios import (
    BY_NAME,
    CANCELLED,
    DONE,
    FAILED,
    FIRST,
    GONE,
    JOB,
    KILL,
    ONE,
    RUNNING,
    SCENARIOS,
    SECOND,
    TWO,
    WAITING,
)
from bench.zombies.systems import SYSTEMS
from tests.house.files import ROOT
from tests.zombies.fakes import TWICE, FakeQueue

SCENARIO = BY_NAME["result_during"]
STEP = BY_NAME["step_after"]
CANCEL = BY_NAME["cancel"]
HELD = Seen(RUNNING, claim="2")
ENDED = Seen(DONE, SECOND, claim="2")
# Nothing hangs on time in the small queue: whoever is lost is named by the director.
QUICK = Times(lease=0.0, warm=0.0, settle=0.5, late=0.2, ending=100.0, patience=100.0)


def written(folder, *runs):
    """A ledger in which each of `runs`, a worker and a part, began and had its effect."""
    ledger = Ledger(folder)
    for worker, part in runs:
        for phase in (START, EFFECT):
            ledger.append(SCENARIO.name, part, worker, phase)
    return ledger


def test_a_run_more_than_the_takeover_needs_is_seen(tmp_path):
    ledger = written(tmp_path, (FIRST, JOB), (SECOND, JOB))
    seen = Observed(before=HELD, woken=[HELD], after=ENDED)
    assert judge(SCENARIO, ledger.lines(), seen, results=True).clean

    written(tmp_path, (SECOND, JOB))

    verdict = judge(SCENARIO, ledger.lines(), seen, results=True)
    assert (1, {JOB: 3}, False) == (verdict.vain, verdict.runs, verdict.clean)


def test_a_worker_that_never_went_on_was_refused_nothing(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(SCENARIO.name, JOB, FIRST, START)
    written(tmp_path, (SECOND, JOB))
    seen = Observed(before=HELD, woken=[HELD], after=ENDED)

    verdict = judge(SCENARIO, ledger.lines(), seen, results=True)

    assert (False, True) == (verdict.tried, verdict.clean)
    assert "2 runs, stopped before it wrote, right" == cell(SCENARIO, {SCENARIO.name: verdict})
    written(tmp_path, (FIRST, JOB))
    assert judge(SCENARIO, ledger.lines(), seen, results=True).tried


def test_a_step_that_runs_again_after_its_commit_is_seen(tmp_path):
    ledger = Ledger(tmp_path)
    for part in (ONE, TWO, ONE, TWO):
        ledger.append(KILL.name, part, SECOND, START)
    seen = Observed(before=HELD, after=ENDED)

    verdict = judge(KILL, ledger.lines(), seen, results=True)

    assert (1, {ONE: 2, TWO: 2}) == (verdict.vain, verdict.runs)


@pytest.mark.parametrize(
    ("scenario", "before", "woken", "told"),
    [
        (SCENARIO, HELD, Seen(DONE, claim="2"), "running became done"),
        (SCENARIO, HELD, Seen(WAITING, claim="2"), "running became waiting"),
        (SCENARIO, HELD, Seen(RUNNING, claim="3"), "its claim was ended"),
        (SCENARIO, ENDED, Seen(DONE, FIRST, claim="2"), "result 'second' became 'first'"),
        (SCENARIO, ENDED, Seen(GONE), "done became gone"),
        (STEP, HELD, Seen(RUNNING, steps=((ONE, FIRST),), claim="2"), "one='first'"),
        (CANCEL, Seen(CANCELLED), Seen(DONE, FIRST), "cancelled became done"),
    ],
)
def test_whatever_the_woken_worker_changes_is_an_accepted_write(scenario, before, woken, told):
    seen = Observed(before=before, woken=[before, woken], after=woken)

    verdict = judge(scenario, [], seen, results=True)

    [stale] = verdict.stale
    assert told in stale
    assert not verdict.clean


def test_a_cancel_that_takes_effect_late_is_no_stale_write(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(CANCEL.name, JOB, FIRST, START)
    cancelled = Seen(CANCELLED, claim="1")
    seen = Observed(before=Seen(RUNNING, claim="1"), woken=[cancelled], after=cancelled)

    assert judge(CANCEL, ledger.lines(), seen, results=True).clean


@pytest.mark.parametrize(
    ("after", "results", "right", "lost"),
    [
        (ENDED, True, True, False),
        (Seen(DONE, FIRST), True, False, False),
        (Seen(DONE), True, False, False),
        (Seen(DONE), False, True, False),
        (Seen(FAILED), False, False, False),
        (Seen(RUNNING), False, False, True),
        (Seen(WAITING), False, False, True),
        (Seen(GONE), False, False, True),
    ],
)
def test_a_job_ends_right_or_wrong_or_never(tmp_path, after, results, right, lost):
    ledger = written(tmp_path, (FIRST, JOB), (SECOND, JOB))

    verdict = judge(
        SCENARIO, ledger.lines(), Observed(before=HELD, after=after), results=results
    )

    assert (right, lost) == (verdict.right, verdict.lost)


def test_the_right_result_without_an_effect_of_its_worker_is_not_right(tmp_path):
    ledger = written(tmp_path, (FIRST, JOB))

    verdict = judge(SCENARIO, ledger.lines(), Observed(before=HELD, after=ENDED), results=True)

    assert not verdict.right


def played(tmp_path, **told):
    folder = tmp_path / "ledger"
    folder.mkdir()
    queue = FakeQueue(tmp_path / "queue.db", **told)
    return play(queue, folder, print, QUICK, queue.at_rest)


def test_a_queue_with_a_fence_has_nothing_to_be_blamed_for(tmp_path):
    found = played(tmp_path, fenced=True).verdicts

    assert set(BY_NAME) == set(found)
    assert [] == [name for name, verdict in found.items() if not verdict.clean]
    assert {each.name for each in SCENARIOS} == {n for n, each in found.items() if each.tried}
    assert {ONE: 1, TWO: 2} == found[KILL.name].runs


def test_a_queue_without_a_fence_and_a_planted_double_are_found_out(tmp_path):
    found = played(tmp_path, fenced=False, twice=True).verdicts

    accepted = {name for name, verdict in found.items() if verdict.stale}
    assert {each.name for each in SCENARIOS} == accepted
    assert ("cancelled became done",) == found["cancel"].stale
    assert ("done became failed",) == found["failure_after"].stale
    assert "one='first'" in " ".join(found["step_after"].stale)
    assert found[TWICE].vain
    wrong = {name for name, verdict in found.items() if not verdict.right}
    assert {"result_after", "failure_after", "retry_after", "cancel"} <= wrong
    assert 0 == summarize(found.values()).lost


def test_a_section_of_the_page_is_written_anew_and_nothing_else_is_touched(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    rows = [
        Row(system=SYSTEMS[0], played=some_play(tmp_path)),
        Row(system=SYSTEMS[2], played=None, missing="not installed"),
    ]

    write_section(rows, page, "PostgreSQL 15")

    text = page.read_text()
    assert ("before", "after") == (text.split()[0], text.split()[-1])
    assert "old" not in text.split()
    assert f"| {SYSTEMS[0].name} | 3 | 1 of 1 | 1 of 2 | 0 | 5.0 s | never |" in text
    assert (
        f"| {SCENARIO.title} | **3 runs**, **accepted**: running became failed, **wrong**"
        in text
    )
    assert f"| {SYSTEMS[2].name} | not installed |" in text


def some_play(folder):
    ledger = written(folder, (FIRST, JOB), (SECOND, JOB), (FIRST, JOB))
    failed = Seen(FAILED)
    seen = Observed(before=HELD, woken=[failed], after=failed)
    verdict = judge(SCENARIO, ledger.lines(), seen, results=True)
    fine = judge(KILL, [], Observed(before=HELD, after=ENDED), results=True)
    return Played(
        verdicts={SCENARIO.name: verdict, KILL.name: fine},
        recovered_stopped=5.0,
        recovered_killed=None,
    )


@pytest.mark.parametrize("text", ["no marks", BEGIN])
def test_a_page_without_a_place_for_the_board_is_refused(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)

    with pytest.raises(SystemExit, match="write between"):
        write_section([], page, "PostgreSQL 15")
    assert text == page.read_text()


def test_the_page_shows_every_scenario_and_no_fault_of_ours():
    text = (ROOT / "docs" / "reliability.md").read_text()
    section = text.partition(BEGIN)[2].partition(END)[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    tables = {cells[0]: cells for cells in lines if cells}

    ours = [place for place, system in enumerate(SYSTEMS, start=1) if system.ours]
    for system in SYSTEMS:
        assert system.name in tables, system.name
        assert system.settings in section, "the page is older than the systems' settings"
        if system.ours:
            runs, stale, right, lost, *_ = tables[system.name][1:]
            scenarios = len(SCENARIOS)
            assert ("1 to 2", f"0 of {scenarios}", "0") == (runs, stale, lost)
            assert f"{scenarios + 1} of {scenarios + 1}" == right
    for scenario in (*SCENARIOS, KILL):
        cells = tables[scenario.title]
        assert [] == [cells[place] for place in ours if "**" in cells[place]]


@pytest.mark.soak
def test_the_board_is_played_against_everybody_and_nothing_stale_of_ours_is_accepted(tmp_path):
    facts = tmp_path / "facts.json"

    done = subprocess.run(
        [ROOT / "run", "bench", "--only", "zombies", "--json", facts],
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    rows = {row["system"]: row["played"] for row in json.loads(facts.read_text())}
    assert [system.name for system in SYSTEMS] == list(rows)
    assert None not in rows.values(), done.stderr[-2000:]
    assert all(row["recovered_killed"] is not None for row in rows.values())
