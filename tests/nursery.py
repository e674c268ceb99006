"""Processes that are born ready: one that has imported everything forks each of them when asked.

A runner needs half a second of CPU to import what it runs and a server more than one; the tests start
thousands. `Born` is a `subprocess.Popen` of `python …` that skips this and nothing else: it has its own
environment, folder, session, descriptors and signals, runs its module as `__main__`, and ends as any
interpreter does. Where the start of a process is itself the promise a test uses `subprocess`.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import structlog

ROOT = Path(__file__).parent.parent
LONGEST = 1 << 17  # bytes; what one is told, mostly its environment
FILES = 4  # the three of every process, and where its end is told
FILES_OF = Path("/proc/self/fd")
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
DUMPABLE = 4  # PR_SET_DUMPABLE
SPACES = ("user", "net", "uts")
LIBC = ctypes.CDLL(None, use_errno=True)
GONE = int(signal.SIGKILL)  # as a status
ALSO = ("celery.bin.celery", "celery.apps.worker", "kombu.transport.redis", "uvicorn.main")

# --- seen from a test


class Born(subprocess.Popen[Any]):
    """`Born([sys.executable, "-m", "retoma", "runner"], …)`: as `subprocess.Popen` in all it does.

    `inside`: the number of a process in whose namespaces it is to live, as `nsenter` has it.
    """

    _end: int

    def __init__(
        self, command: Sequence[str], *, inside: str | None = None, **how: Any
    ) -> None:
        self._inside = inside
        super().__init__(command, **how)

    def _execute_child(self, *given: Any) -> None:
        """Instead of fork and exec. Its parent is the nursery, which tells us of its end."""
        told = EXECUTE.bind(self, *given).arguments
        program, *words = map(os.fspath, told["args"])
        assert program == sys.executable, f"only Python is born ready, not {program}"
        assert (None, ()) == (told["preexec_fn"], told["pass_fds"]), "only exec can do that"
        self._end, end = os.pipe()
        files = [
            standard if wanted == -1 else wanted
            for standard, wanted in enumerate(
                (told["p2cread"], told["c2pwrite"], told["errwrite"])
            )
        ]
        life = {
            "words": words,
            "cwd": os.fspath(told["cwd"] or Path.cwd()),
            "environment": dict(told["env"] if told["env"] is not None else os.environ),
            "session": bool(told["start_new_session"]),
            "inside": self._inside,
        }
        try:
            socket.send_fds(nursery(), [json.dumps(life).encode()], [*files, end])
        finally:
            os.close(end)
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(told[name] for name in pipes))  # type: ignore[attr-defined]
        pid = self._heard()
        if pid is None:  # any number in its place would be that of somebody else
            os.close(self._end)
            raise ChildProcessError("the process that forks for the tests has ended")
        self.pid = pid
        self._child_created = True

    def _heard(self) -> int | None:
        """The next number that is told; None: whoever tells has ended, and with it all of its children."""
        told = b""
        while not told.endswith(b"\n"):
            more = os.read(self._end, 1)
            if not more:
                return None
            told += more
        return int(told)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        look = select.poll()  # its descriptor may be more than select can count to
        look.register(self._end, select.POLLIN)
        if not look.poll(0 if wait_flags else None):
            return 0, 0
        status = self._heard()
        os.close(self._end)
        return self.pid, GONE if status is None else status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


EXECUTE = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


def run(
    command: Sequence[str], *, check: bool = False, timeout: float | None = None, **how: Any
) -> "subprocess.CompletedProcess[Any]":
    """As `subprocess.run`."""
    if how.pop("capture_output", False):
        how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Born(command, **how) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def nursery() -> socket.socket:
    """The one of this process, also for threads that ask for it at once."""
    with MAKING:
        return _nursery()


MAKING = threading.Lock()


def kill_session(child: "subprocess.Popen[Any]") -> None:
    """Kill a process that leads a session, and all in it; remove the semaphores they had, as nobody else will."""
    if child.poll() is None:  # once it has ended its number may be another's
        semaphores = set[Path]().union(*map(semaphores_of, group_of(child.pid)))
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for each in semaphores:
            each.unlink(missing_ok=True)


def group_of(leader: int) -> list[int]:
    found = []
    for each in Path("/proc").iterdir():
        with contextlib.suppress(ValueError, ProcessLookupError):
            if os.getpgid(int(each.name)) == leader:
                found.append(int(each.name))
    return found


def semaphores_of(pid: int) -> set[Path]:
    with contextlib.suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        return {Path(line.split()[5]) for line in maps if "/sem." in line}
    return set()


@cache
def _nursery() -> socket.socket:
    """It ends when our end of its socket closes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.nursery", str(theirs.fileno()), ADDRESS],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    assert ours.recv(1), "the nursery has ended before it began"
    return ours


ADDRESS = f"retoma-nursery-{secrets.token_hex(8)}"  # in Linux's own space of names: no file


def stand_in(folder: Path, program: str) -> None:
    """A program of that name which has ours born, passes on what it is told, and ends as ours does."""
    nursery()
    path = folder / program
    ours = Path(sys.executable).parent / program
    path.write_text(f"#!{sys.executable} -IS\n{STAND_IN % (ADDRESS, str(ours))}")
    path.chmod(0o755)


STAND_IN = """
import json, os, signal, socket, sys
wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
wire.connect("\\0" + %r)
reads, writes = os.pipe()
life = {"words": [%r, *sys.argv[1:]], "cwd": os.getcwd(), "environment": dict(os.environ)}
socket.send_fds(wire, [json.dumps(life | {"session": False}).encode()], [0, 1, 2, writes])
os.close(writes)
with open(reads) as told:
    child = int(told.readline())
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sign, lambda number, _: os.kill(child, number))
    end = os.waitstatus_to_exitcode(int(told.readline() or 9))
if end < 0:
    signal.signal(-end, signal.SIG_DFL)
    os.kill(os.getpid(), -end)
sys.exit(end)
"""


# --- the nursery


class Nursery:
    """Forks, and tells of each child its number and its end.

    A child for whose end nobody waits any more is ended: whoever stood for it was killed.
    """

    def __init__(self, asked: socket.socket, heard: socket.socket) -> None:
        self._asked = asked
        self._heard = heard
        self._ends: dict[int, int] = {}  # by the descriptor where it is told, the child
        self._path = sys.path[1:]
        self._wake, self._woken = socket.socketpair()
        for each in (self._wake, self._woken):
            each.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        self._events = select.epoll()
        for each in (self._asked, self._heard, self._wake):
            self._events.register(each, select.EPOLLIN)

    def serve(self) -> dict[str, Any] | None:
        """What a child is to be, in the child; None when nobody is left who could ask."""
        while True:
            for file, _ in self._events.poll():
                if file == self._wake.fileno():
                    self._reap()
                    break  # what it has closed may still stand in this round
                if file in self._ends:
                    self._events.unregister(file)
                    os.kill(self._ends[file], signal.SIGKILL)
                elif (told := self._hear(file)) is None:
                    return None
                elif told[0] and self._bear(told[1]):
                    return self._grown(json.loads(told[0]), told[1])

    def _hear(self, file: int) -> tuple[bytes, list[int]] | None:
        """Of the one who started us, or of a stand-in; None: he has left."""
        if file == self._asked.fileno():
            message, files, _, _ = socket.recv_fds(self._asked, LONGEST, FILES)
            return (message, files) if message else None
        asked, _ = self._heard.accept()
        with asked:
            if user_of(asked) != os.geteuid():  # everybody may read what our socket is called
                return b"", []
            message, files, _, _ = socket.recv_fds(asked, LONGEST, FILES)
            return message, files

    def _bear(self, files: list[int]) -> bool:
        """Whether we are the child."""
        pid = os.fork()
        if pid == 0:
            return True
        *given, end = files
        self._ends[end] = pid
        os.write(end, f"{pid}\n".encode())
        self._events.register(end, 0)  # told only that nobody reads there any more
        for each in given:
            os.close(each)
        return False

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._tell(*ended)

    def _tell(self, pid: int, status: int) -> None:
        [end] = [end for end, child in self._ends.items() if child == pid]
        del self._ends[end]
        with contextlib.suppress(BrokenPipeError):
            os.write(end, f"{status}\n".encode())
        # A child that was just forked may still have it: closed here alone it would stay registered.
        with contextlib.suppress(FileNotFoundError):
            self._events.unregister(end)
        os.close(end)

    def _grown(self, life: dict[str, Any], files: list[int]) -> dict[str, Any]:
        """A process as exec would leave it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if life["session"]:
            os.setsid()
        for standard, file in enumerate(files[:3]):
            os.dup2(file, standard)
        self._events.close()
        for each in (self._asked, self._heard, self._wake, self._woken):
            each.detach()
        os.closerange(3, max(int(each.name) for each in FILES_OF.iterdir()) + 1)
        if life.get("inside"):
            enter(life["inside"])
        LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL)  # after `enter`: new rights undo it
        os.chdir(life["cwd"])
        os.environ.clear()
        os.environ.update(life["environment"])
        return life | {"path": self._path}


def user_of(peer: socket.socket) -> int:
    """Who connected, as the kernel says: SO_PEERCRED is a process, a user and a group."""
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(user)


def enter(other: str) -> None:
    """The namespaces of that process, where they are not ours already."""
    for space in SPACES:
        path = Path(f"/proc/{other}/ns/{space}")
        if path.readlink() == Path(f"/proc/self/ns/{space}").readlink():
            continue
        with path.open("rb") as file:
            assert 0 == LIBC.setns(file.fileno(), 0), f"{path}: errno {ctypes.get_errno()}"
    LIBC.prctl(DUMPABLE, 1)  # as after an exec: else its own /proc is another's


def live(life: dict[str, Any]) -> None:
    """As `python` with these words does."""
    crashpoint = importlib.import_module("retoma.db").crashpoint
    crashpoint.__init__(os.environ.get("RETOMA_CRASHPOINT", ""))  # read when it was imported
    open_streams(bool(os.environ.get("PYTHONUNBUFFERED")))
    how, *words = life["words"]
    what = words.pop(0) if how in WAYS else how
    more = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [WAYS.get(how, str(Path(what).absolute().parent)), *more, *life["path"]]
    sys.argv[:] = [how, *words]
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    elif how == "-c":
        exec(compile(what, "<string>", "exec"), vars(sys.modules["__main__"]))  # noqa: S102 — as the interpreter does
    else:
        runpy.run_path(what, run_name="__main__")


WAYS = {"-m": os.curdir, "-c": ""}  # and where then its own modules are


def open_streams(unbuffered: bool) -> None:
    """The old ones remember what their descriptors were."""
    for name, errors in (
        ("stdin", "strict"),
        ("stdout", "strict"),
        ("stderr", "backslashreplace"),
    ):
        reads = name == "stdin"
        stream = open(  # noqa: SIM115 — as long as the process
            STANDARD[name],
            "r" if reads else "w",
            buffering=1 if name == "stderr" else -1,
            encoding="utf-8",
            errors=errors,
            closefd=False,
        )
        if unbuffered and not reads:
            stream.reconfigure(write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}


def end_as_an_interpreter(life: dict[str, Any]) -> NoReturn:
    """But for what it takes apart at last: here that would be two thousand modules."""
    code: Any = 0
    try:
        live(life)
    except SystemExit as left:
        code = left.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 — nobody else is told
        sys.excepthook(*sys.exc_info())
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code or 0)


def import_everything() -> None:
    import retoma

    for found in pkgutil.walk_packages(retoma.__path__, "retoma."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(Exception):  # who needs it will be told
                importlib.import_module(found.name)
    for name in ALSO:
        importlib.import_module(name)
    plain_tracebacks()


def plain_tracebacks() -> None:
    """Where nobody says otherwise structlog draws a stack with all its values: half a second of CPU."""
    structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback


def main(asked: int, address: str) -> None:
    import_everything()
    gc.collect()
    gc.freeze()
    wire = socket.socket(fileno=asked)
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    heard.bind(f"\0{address}")
    heard.listen()
    wire.send(b".")  # ready
    life = Nursery(wire, heard).serve()
    if life is not None:
        end_as_an_interpreter(life)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
