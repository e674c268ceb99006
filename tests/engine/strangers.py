"""What code of a stranger would try in a child that reads its file; and processes without some rights."""

import ctypes
import errno
import gc
import os
import pickle
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pebble.pool.channel import WorkerChannel

from retoma.engine.isolation import confine
from retoma.engine.rules.errors import Permanent, Transient


def environment() -> dict[str, str]:
    """Its own, and what the kernel says it was started with."""
    started = Path("/proc/self/environ").read_bytes().split(b"\0")
    return dict(os.environ) | {each.decode(): "" for each in started if each}


def arguments() -> str:
    return repr(Path("/proc/self/cmdline").read_bytes()) + repr(__import__("sys").argv)


def descriptors() -> list[str]:
    """What is behind each, in the order of their numbers."""
    found = []
    for number in range(64):
        with suppress(OSError):
            found.append(str(Path(f"/proc/self/fd/{number}").readlink()))
    return found


def reach(parent: int) -> dict[str, str]:
    """What came of each try."""
    tries: dict[str, Callable[[], object]] = {
        "socket": socket.socket,
        "pair": socket.socketpair,
        "kill": lambda: os.kill(parent, 0),
        "environ": Path(f"/proc/{parent}/environ").read_bytes,
        "fork": _forked,
        "program": lambda: subprocess.run(["/bin/true"], check=True),
    }
    return {name: _outcome(tried) for name, tried in tries.items()}


def _forked() -> None:
    if not os.fork():
        os._exit(0)


def _outcome(tried: Callable[[], object]) -> str:
    try:
        tried()
    except OSError as error:
        return type(error).__name__
    return "done"


def read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def write_text(path: str) -> str:
    try:
        Path(path).write_text("here", encoding="utf-8")
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "written"


def size_of(path: str) -> int:
    return len(Path(path).read_bytes())


def eat_shared(n: int) -> int:
    """Memory that no limit of data counts."""
    import mmap

    return len(mmap.mmap(-1, n))


def raise_limits() -> str:
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
    except (OSError, ValueError) as error:
        return type(error).__name__
    return "raised"


def threads() -> int:
    """Those it may have."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(1))
    thread.start()
    thread.join()
    return len(found)


def refuse_by_code(n: int) -> None:
    raise Permanent(f"page {n} is encrypted", code="encrypted")


def fail_for_now() -> None:
    raise Transient("later", code="busy")


class OfMyOwn(Exception):
    """Nobody else knows it."""


def fail_in_my_own_way() -> None:
    raise OfMyOwn("what I say")


def send_code(path: str) -> None:
    """In the place of an answer, what makes a file where it is unpickled."""

    class Code:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {path}",)

    for each in gc.get_objects():
        if isinstance(each, WorkerChannel):
            each.writer.send_bytes(pickle.dumps(Code()))
    threading.Event().wait(60)


# — processes that lack rights —


def without_confinement() -> None:
    """As in a container that allows neither seccomp nor Landlock."""
    numbers = {"x86_64": (157, 317), "aarch64": (167, 277)}[os.uname().machine]
    machine = confine.MACHINES[os.uname().machine]
    refuse = confine.FAIL | errno.EPERM

    def program() -> Iterator[bytes]:
        yield confine._step(confine.LOAD, confine.NUMBER_AT)
        for number in (*machine.landlock, numbers[1]):
            yield from confine._if(confine.JUMP_IF, number, refuse)
        yield confine._step(confine.JUMP_IF, numbers[0], 0, 4)
        yield confine._step(confine.LOAD, confine.ARGUMENT_AT)
        yield confine._step(confine.JUMP_IF, confine.PR_SET_SECCOMP, 0, 1)
        yield confine._step(confine.RETURN, refuse)
        yield confine._step(confine.RETURN, confine.ALLOW)
        yield confine._step(confine.RETURN, confine.ALLOW)

    _with_program(program)


def _with_program(program: Callable[[], Iterator[bytes]]) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(confine.PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    confine._install(libc, b"".join(program()))


def without_capabilities() -> None:
    """As a plain user: what root may do beyond others is gone."""
    machine = confine.MACHINES[os.uname().machine]
    head = struct.pack("=Ii", confine.CAPABILITIES, 0)
    ctypes.CDLL(None).syscall(machine.set_capabilities, head, bytes(24))
