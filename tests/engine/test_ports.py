"""Time, ids and processes come in here."""

import os
import subprocess
import sys

from retoma.engine.ports import Clock, Ids, Process, chance


def test_the_clock_moves_with_the_time_of_a_test(test_clock):
    clock = Clock()
    before = clock.now()

    test_clock.jump(3600)

    assert 3600 <= clock.now() - before < 3660


def test_no_two_ids_are_the_same():
    ids = Ids()

    assert 1000 == len({ids.new() for _ in range(1000)})


def test_chance_is_another_each_time():
    assert chance().random() != chance().random()


def test_a_living_process_is_not_gone():
    assert not Process.this().gone()
    assert os.getpid() == Process.this().pid


def test_a_process_that_has_ended_is_gone_even_before_somebody_has_waited_for_it():
    child = subprocess.Popen(
        [sys.executable, "-c", "from retoma.engine.ports import Process as p\n"
         "print(p.this().started, flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    started = child.stdout.readline().strip()
    seen = Process(Process.this().host, child.pid, started)
    alive = seen.gone()

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = seen.gone()
    child.communicate()

    assert (False, True, True) == (alive, zombie, seen.gone())


def test_a_number_that_was_given_to_another_process_is_another_process():
    me = Process.this()

    assert Process(me.host, me.pid, "12345").gone()


def test_a_process_of_unknown_start_is_never_provably_gone():
    assert not Process("elsewhere", 999_999_999, "").gone()


def test_machines_that_are_clones_tell_themselves_apart_by_what_they_are_called():
    """Same name, same boot, same numbers: they would take each other's runners for dead."""
    one, other = Process.this("one"), Process.this("other")

    assert 3 == len({one.host, other.host, Process.this().host})
    assert one.host == Process.this("one").host


def test_the_host_is_the_same_for_neighbours():
    there = subprocess.run(
        [
            sys.executable,
            "-c",
            "from retoma.engine.ports import Process as p; print(p.this().host)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert Process.this().host == there.stdout.strip()
