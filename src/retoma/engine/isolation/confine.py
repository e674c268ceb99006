"""Confine a process that reads bytes of strangers: no network, no files but code, no others' processes.

A flaw in a reader (a PDF library, an HTML parser) may let a file run code of its own. What such code may do
is decided here, in the child, before it is given anything of a stranger: by resource limits everywhere, on
Linux by seccomp and, where the kernel has it, by Landlock. None of it needs a privilege. `find_gaps` tries, in
the confined child itself, what should be impossible.
"""

import ctypes
import errno
import os
import platform
import resource
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

MEMORY: Final = 1 << 30  # bytes of data; a call may have less
ADDRESSES: Final = 8 << 30  # bytes of addresses, code and shared memory included
WRITTEN: Final = 16 << 20  # bytes of one file: a child writes notes
DESCRIPTORS: Final = 64

# What the interpreter itself may need to start. Nothing else of the environment is passed on.
NEEDED: Final = ("LD_LIBRARY_PATH", "PYTHONHOME")

# — linux/prctl.h, linux/seccomp.h, linux/landlock.h, linux/capability.h —

PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_SECCOMP: Final = 22
FILTER: Final = 2
ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
FAIL: Final = 0x00050000  # and the number of the error
LOAD, JUMP_IF, JUMP_IF_GREATER, JUMP_IF_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENT_AT = 0, 4, 16
CLONE_THREAD: Final = 0x00010000
X32: Final = 0x40000000  # calls of a third kind, on x86-64
READ_FILE, READ_DIRECTORY, WRITE_FILE, MAKE_FILE = 1 << 2, 1 << 3, 1 << 1, 1 << 8
NETWORK: Final = 0b11  # bind, connect
SCOPES: Final = 0b11  # abstract sockets and signals beyond the confined
KEPT: Final = 0b110  # capabilities: a child of root may read the code that its parent reads
CAPABILITIES: Final = 0x20080522

MOST_ENTRIES: Final = 10_000  # of a folder of somebody's own modules
CODE: Final = (".py", ".so", ".pyc", ".dist-info", ".egg-info")
# Beside code, what a child may have to read.
SYSTEM: Final = (
    *("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime"),
    *("/dev/null", "/dev/urandom", "/proc/self"),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """The numbers of system calls of one processor."""

    architecture: int
    landlock: tuple[int, int, int]  # create a ruleset, add to it, restrict
    set_capabilities: int
    refused: Sequence[int]
    clone: int
    clone3: int
    tgkill: int
    prlimit: int


# Of the network; of other processes; programs and children; namespaces and mounts; keys, rings and the kernel.
MACHINES: Final = {
    "x86_64": Machine(
        architecture=0xC000003E,
        landlock=(444, 445, 446),
        set_capabilities=126,
        refused=(
            *(41, 42, 43, 44, 46, 49, 50, 53, 288, 307),
            *(62, 101, 129, 200, 297, 310, 311, 312, 424, 434, 438, 440),
            *(57, 58, 59, 322),
            *(155, 161, 165, 166, 272, 308, 304, 428, 429, 430, 431, 432, 433, 442),
            *(248, 249, 250, 425, 426, 427, 298, 321, 323, 175, 313, 176, 169, 246, 320),
            *(29, 30, 31, 64, 68, 240),
        ),
        clone=56,
        clone3=435,
        tgkill=234,
        prlimit=302,
    ),
    "aarch64": Machine(
        architecture=0xC00000B7,
        landlock=(444, 445, 446),
        set_capabilities=91,
        refused=(
            *(198, 199, 200, 201, 202, 203, 206, 211, 242, 269),
            *(117, 129, 130, 138, 240, 270, 271, 272, 424, 434, 438, 440),
            *(221, 281),
            *(39, 40, 41, 51, 97, 268, 265, 428, 429, 430, 431, 432, 433, 442),
            *(217, 218, 219, 425, 426, 427, 241, 280, 282, 105, 273, 106, 142, 104, 294),
            *(180, 186, 190, 194, 195, 196),
        ),
        clone=220,
        clone3=435,
        tgkill=131,
        prlimit=261,
    ),
}


def bare_environment() -> dict[str, str]:
    """The environment of a confined child."""
    return {name: os.environ[name] for name in NEEDED if name in os.environ}


def confine(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Confine this process for as long as it lives, as far as the kernel can.

    `readable` and `writable` are folders beside the code that is installed.
    """
    os.chdir("/")
    _limit_resources()
    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    _drop_capabilities(libc, machine)
    _restrict_files(libc, machine, readable, writable)
    _refuse_calls(libc, machine)


def _limit_resources() -> None:
    for which, most in (
        (resource.RLIMIT_DATA, MEMORY),
        (resource.RLIMIT_AS, ADDRESSES),
        (resource.RLIMIT_FSIZE, WRITTEN),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(which)
        least = most if hard < 0 else min(most, hard)
        resource.setrlimit(which, (least, least))


def _drop_capabilities(libc: Any, machine: Machine) -> None:
    """A child of root has no more rights than it needs to read."""
    have = next(
        (
            int(line.split()[1], 16)
            for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            if line.startswith("CapEff:")
        ),
        0,
    )
    left = have & KEPT
    head = struct.pack("=Ii", CAPABILITIES, 0)
    libc.syscall(machine.set_capabilities, head, struct.pack("=6I", left, left, 0, 0, 0, 0))


# — files, by Landlock —


def _restrict_files(
    libc: Any, machine: Machine, readable: Iterable[str], writable: Iterable[str]
) -> None:
    create, add, restrict = machine.landlock
    version = libc.syscall(create, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return
    files = (1 << (13 + min(version - 1, 2))) - 1  # as many rights as this version knows
    if version >= 5:
        files |= 1 << 15
    handled = struct.pack(
        "=QQQ", files, NETWORK if version >= 4 else 0, SCOPES if version >= 6 else 0
    )
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = libc.syscall(create, handled, ctypes.c_size_t(size), 0)
    if rules < 0:
        return
    try:
        for path, rights in _allowed(readable, writable):
            with _opened(path) as opened:
                if opened is not None:
                    rule = struct.pack("=Qi", rights & files, opened)
                    libc.syscall(add, rules, 1, rule, 0)
        libc.syscall(restrict, rules, 0)
    finally:
        os.close(rules)


def _allowed(readable: Iterable[str], writable: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Paths, and what may be done below them."""
    installed = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    for path in (*installed, *SYSTEM, *readable):
        yield path, _reading(path)
    for path in writable:
        yield path, READ_FILE | READ_DIRECTORY | WRITE_FILE | MAKE_FILE
    for path in sys.path:
        if _is_folder(path) and not any(_is_below(path, each) for each in installed):
            # Somebody's own folder: its modules, and not what else lies there.
            yield path, READ_DIRECTORY
            for code in _code_in(Path(path)):
                yield str(code), _reading(str(code))


def _reading(path: str) -> int:
    return READ_FILE | (READ_DIRECTORY if _is_folder(path) else 0)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 — the other raises where we may not look


def _code_in(folder: Path) -> Iterator[Path]:
    for each in islice(folder.iterdir(), MOST_ENTRIES):
        with suppress(OSError):  # what we may not look into is no code of ours
            if each.suffix in CODE or (each / "__init__.py").is_file():
                yield each


def _is_below(path: str, root: str) -> bool:
    return Path(path).is_relative_to(root)


@contextmanager
def _opened(path: str) -> Iterator[int | None]:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)


# — system calls, by seccomp —


def _refuse_calls(libc: Any, machine: Machine) -> None:
    _install(libc, b"".join(_program(machine)))


def _install(libc: Any, program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    told = Program(len(program) // 8, ctypes.addressof(code))
    libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(FILTER), ctypes.byref(told))


def _program(machine: Machine) -> Iterator[bytes]:
    """A filter over the number of a call, and one argument of some."""
    refuse = FAIL | errno.EPERM
    yield _step(LOAD, ARCHITECTURE_AT)
    yield _step(JUMP_IF, machine.architecture, 1, 0)
    yield _step(RETURN, KILL)
    yield _step(LOAD, NUMBER_AT)
    yield from _if(JUMP_IF_GREATER, X32, refuse)
    # The C library falls back to `clone`, whose flags can be seen.
    yield from _if(JUMP_IF, machine.clone3, FAIL | errno.ENOSYS)
    for number in machine.refused:
        yield from _if(JUMP_IF, number, refuse)
    yield from _if_argument(machine.clone, JUMP_IF_SET, CLONE_THREAD, refuse)
    yield from _if_argument(machine.tgkill, JUMP_IF, os.getpid(), refuse)
    yield from _if_argument(machine.prlimit, JUMP_IF, 0, refuse)
    yield _step(RETURN, ALLOW)


def _if(test: int, value: int, then: int) -> Iterator[bytes]:
    yield _step(test, value, 0, 1)
    yield _step(RETURN, then)


def _if_argument(number: int, test: int, value: int, otherwise: int) -> Iterator[bytes]:
    """Of one call: it is allowed where its first argument is as it should be."""
    yield _step(JUMP_IF, number, 0, 4)
    yield _step(LOAD, ARGUMENT_AT)
    yield _step(test, value, 1, 0)
    yield _step(RETURN, otherwise)
    yield _step(RETURN, ALLOW)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


# — what is still possible —


def find_gaps() -> list[str]:
    """What this process can do that a confined one should not: `environment`, `network`, `files`,
    `processes`, `programs`."""
    tries = {
        "environment": _knows_environment,
        "network": _has_network,
        "files": _reads_files,
        "processes": _sees_processes,
        "programs": _starts_programs,
    }
    return [name for name, tried in tries.items() if tried()]


def _knows_environment() -> bool:
    own = {*NEEDED, "LC_CTYPE"}  # Python sets the last one itself
    return bool(os.environ.keys() - own)


def _has_network() -> bool:
    with suppress(OSError):
        socket.socket().close()
        return True
    return False


def _reads_files() -> bool:
    """One that everybody may read, and no code."""
    with suppress(OSError):
        Path("/etc/passwd").read_bytes()
        return True
    return False


def _sees_processes() -> bool:
    with suppress(OSError):
        os.kill(os.getppid(), 0)
        return True
    with suppress(OSError):
        Path(f"/proc/{os.getppid()}/environ").read_bytes()
        return True
    return False


def _starts_programs() -> bool:
    with suppress(OSError):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        return True
    return False
