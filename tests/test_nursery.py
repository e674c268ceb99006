"""What is born ready behaves as what is started."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests import nursery
from tests.nursery import Born

BOTH = pytest.mark.parametrize("start", [subprocess.Popen, Born], ids=["started", "born"])
ASK = "import os, sys; print(os.environ.get('A'), os.getcwd(), sys.argv[1:], os.getsid(0) == os.getpid())"


def told(start, code, *words, **how):
    child = start(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True, **how
    )
    out, _ = child.communicate(timeout=60)
    return child.returncode, out.strip()


@BOTH
@pytest.mark.parametrize("session", [True, False])
def test_it_has_what_it_was_given(start, tmp_path, session):
    how = {"env": {**os.environ, "A": "b"}, "cwd": tmp_path, "start_new_session": session}

    assert (0, f"b {tmp_path} ['x y'] {session}") == told(start, ASK, "x y", **how)


@BOTH
@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('a word')", 1),
        ("raise KeyError", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os._exit(4)", 4),
    ],
)
def test_its_end_is_told(start, code, end):
    assert (end, "") == told(start, code, stderr=subprocess.DEVNULL)


@BOTH
def test_what_waits_for_its_end_is_done_before(start):
    code = (
        "import atexit, threading, time; atexit.register(print, 'left');"
        "threading.Timer(0.05, print, ['worked']).start()"
    )

    assert (0, "worked\nleft") == told(start, code)


@BOTH
def test_it_reads_what_it_is_told_and_has_no_file_of_ours(start):
    code = "import json, os; print(json.dumps([input(), sorted(map(int, os.listdir('/proc/self/fd')))]))"
    child = start(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    out, _ = child.communicate("hello\n", timeout=60)

    assert ["hello", [0, 1, 2, 3]] == json.loads(out)  # the last one lists


@BOTH
def test_a_signal_reaches_it_and_it_is_waited_for(start):
    child = start([sys.executable, "-c", "import time; time.sleep(100)"])

    assert child.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.01)
    child.terminate()
    assert -signal.SIGTERM == child.wait(60)
    child.kill()  # nobody is there


TOGETHER = """
import os, socket
from tests.nursery import Nursery
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
heard = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
heard.bind("")
heard.listen()
nursery = Nursery(theirs, heard)
reads, writes = os.pipe()
if nursery._bear([writes]):
    os._exit(0)
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
os.close(reads)
ours.close()
print(nursery.serve())
"""


def test_who_ends_together_with_whoever_waited_for_it_holds_up_nobody():
    """Both are told in one round: the first closes what the second is about."""
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER], capture_output=True, text=True, check=True, timeout=60
    )

    assert "None" == done.stdout.strip()


KEPT = """
import os, socket
from tests.nursery import Nursery
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
heard = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
heard.bind("")
heard.listen()
nursery = Nursery(theirs, heard)
reads, writes = os.pipe()
kept = os.dup(writes)
if nursery._bear([writes]):
    os._exit(0)
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
nursery._reap()
os.close(reads)
ours.close()
print(nursery.serve())
"""


def test_an_end_that_another_child_still_has_from_its_birth_holds_up_nobody():
    """What a fork has copied stays registered though we close it, and its reader's leaving is told."""
    done = subprocess.run(
        [sys.executable, "-c", KEPT], capture_output=True, text=True, check=True, timeout=60
    )

    assert "None" == done.stdout.strip()


def test_a_module_is_its_main_and_its_crash_points_are_its_own():
    environment = {**os.environ, "RETOMA_CRASHPOINT": "here=kill"}
    code = "from retoma.db import crashpoint; print(crashpoint.armed('here'))"

    done = nursery.run(
        [sys.executable, "-m", "retoma", "--version"], capture_output=True, check=True
    )

    assert done.stdout.startswith(b"retoma ")
    assert (0, "True") == told(Born, code, env=environment)
    assert (0, "False") == told(Born, code)


ASK_AS_NOBODY = """
import json, os, socket, sys
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
wire.connect("\\0" + sys.argv[1])
reads, writes = os.pipe()
life = {"words": ["-c", "print(1)"], "cwd": "/", "environment": {}, "session": False}
try:
    socket.send_fds(wire, [json.dumps(life).encode()], [0, 1, 2, writes])
except BrokenPipeError:
    pass
os.close(writes)
print("born" if os.read(reads, 100) else "refused")
"""


def test_another_user_has_nothing_born_though_the_socket_has_no_file():
    nursery.nursery()

    asked = subprocess.run(
        [sys.executable, "-c", ASK_AS_NOBODY, nursery.ADDRESS],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert ("refused" if os.geteuid() == 0 else "born") in asked.stdout
    assert (0, "here") == told(Born, "print('here')")
