"""What the processes of a worker share works without a lock, in whichever of them."""

import os

import pytest

from retoma.db.poll import wait_readable
from retoma.dispatch.message import IgnoreReason
from retoma.dispatch.shared_state import SharedState


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_each_sort_is_said_by_one_process_of_a_family():
    family = SharedState()
    out, in_ = os.pipe()
    children = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            try:
                said = family.take_warning(IgnoreReason.UNKNOWN)
                os.write(in_, b"1" if said else b"0")
            finally:
                os._exit(0)  # whatever it raised: it must not go on as a second test process
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)

    answers = os.read(out, 100)
    mine = [
        family.take_warning(IgnoreReason.UNKNOWN),
        family.take_warning(IgnoreReason.SIZE),
        family.take_warning(IgnoreReason.SIZE),
    ]
    family.close()
    os.close(out)
    os.close(in_)

    assert b"00000001" == bytes(sorted(answers))
    assert [False, True, False] == mine


def test_everybody_sees_that_the_worker_leaves_and_nobody_takes_it_away():
    family = SharedState()
    before = wait_readable([family.leaving], 0)

    for _ in range(3):
        family.signal_leaving()
    seen = [wait_readable([family.leaving], 0) for _ in range(2)]
    family.close()

    assert not before
    assert [True, True] == seen
