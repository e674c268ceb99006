"""SQLite under faults: every statement, every operation on its files, and the lock of another process.

Statements are seen by a hook on each connection, files by a VFS that passes everything on. What SQLite does
beside its VFS, the locks and the mapping of its shared memory, is seen as the system calls they are.
"""

import ctypes
import errno
import threading
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw

from tests.prove.places import Place, name_of

F_GETLK, F_SETLK, F_SETLKW = 5, 6, 7
F_UNLCK = 2
LOCKED = 0.1  # seconds that another process holds the file
SYSTEM = "unix"  # the VFS to which all is passed on


class Fault(StrEnum):
    """What happens to one statement or to one operation on a file."""

    BUSY = "busy"
    FULL = "full"
    IOERR = "ioerr"
    NOMEM = "nomem"
    READONLY = "readonly"
    INTERRUPT = "interrupt"
    UNKNOWN = "unknown"
    LOCKED = "locked by another process"
    CANTOPEN = "cantopen"
    EMFILE = "emfile"


ERRORS: dict[Fault, Callable[[str], Exception]] = {
    Fault.BUSY: apsw.BusyError,
    Fault.FULL: apsw.FullError,
    Fault.IOERR: apsw.IOError,
    Fault.NOMEM: apsw.NoMemError,
    Fault.READONLY: apsw.ReadOnlyError,
    Fault.INTERRUPT: apsw.InterruptError,
    Fault.UNKNOWN: apsw.InternalError,
    Fault.CANTOPEN: apsw.CantOpenError,
}
OF_STATEMENTS = (
    *(Fault.BUSY, Fault.FULL, Fault.IOERR, Fault.NOMEM),
    *(Fault.READONLY, Fault.INTERRUPT, Fault.UNKNOWN),
)
OF_OPERATIONS = {
    "write": (Fault.IOERR, Fault.FULL),
    "open": (Fault.CANTOPEN, Fault.EMFILE),
    "lock": (Fault.IOERR, Fault.BUSY),
    "shm-lock": (Fault.IOERR, Fault.BUSY),
    "shm-map": (Fault.IOERR,),
}


class Spoiler:
    """Counts what passes, and spoils one place of it."""

    def __init__(self, hold: Callable[[float], None]) -> None:
        self._hold = hold  # takes the file's lock in another process for so many seconds
        self._at: Place | None = None
        self._fault: Fault | None = None
        self._seen: Counter[tuple[str, str]] = Counter()
        self._counting = threading.Lock()
        self._listening = False
        self.places: list[Place] = []
        self.hit = False

    def arm(self, at: Place | None, fault: Fault | None) -> None:
        with self._counting:
            self._at, self._fault = at, fault
            self._seen.clear()
            self.places, self.hit, self._listening = [], False, True

    def disarm(self) -> None:
        self._listening = False

    def passes(self, lane: str, name: str) -> Fault | None:
        """What is to happen now; None: nothing."""
        if not self._listening:
            return None
        with self._counting:
            place = Place(lane, name, self._seen[lane, name])
            self._seen[lane, name] += 1
            self.places.append(place)
            if self.hit or place != self._at:
                return None
            self.hit = True
            return self._fault

    def watch(self, connection: apsw.Connection) -> None:
        """A hook for `apsw.connection_hooks`."""
        # A connection that is made for a moment, as by a copy, has no lane of its own.
        thread = threading.current_thread().name
        lane = "write" if thread == "retoma-write" else "read"

        def before(_cursor: Any, sql: str, _bindings: Any) -> bool:
            fault = self.passes(lane, name_of("sqlite", sql))
            if fault is Fault.LOCKED:
                self._hold(LOCKED)
            elif fault is not None:
                raise ERRORS[fault](f"made up: {fault}")
            return True

        if self._listening:
            connection.exec_trace = before

    def strike(self, name: str) -> None:
        """An operation on a file is about to be done."""
        fault = self.passes("file", name)
        if fault is Fault.EMFILE:
            raise OSError(errno.EMFILE, "Too many open files")
        if fault is not None:
            raise ERRORS[fault](f"made up: {fault}")


class FaultVFS(apsw.VFS):
    """Passes everything on to the system's own, where nothing is to be spoiled."""

    def __init__(self, spoiler: Spoiler) -> None:
        self.spoiler = spoiler
        super().__init__("prove", SYSTEM, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 — SQLite's word
        self.spoiler.strike(f"{_kind(name)}.open")
        return FaultFile(self.spoiler, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.spoiler.strike(f"{_kind(filename)}.delete")
        super().xDelete(filename, syncdir)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        self.spoiler.strike(f"{_kind(pathname)}.access")
        return super().xAccess(pathname, flags)

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        self.spoiler.strike(f"{_kind(name)}.path")
        return super().xFullPathname(name)

    def excepthook(self, *_: Any) -> bool:
        """What is made up here is told by whoever asked SQLite."""
        return True


class FaultFile(apsw.VFSFile):
    """One open file."""

    def __init__(self, spoiler: Spoiler, name: Any, flags: list[int]) -> None:
        self._spoiler = spoiler
        self._kind = _kind(name)
        super().__init__(SYSTEM, name, flags)

    def excepthook(self, *_: Any) -> bool:
        """As above."""
        return True

    def _strike(self, operation: str) -> None:
        self._spoiler.strike(f"{self._kind}.{operation}")

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._strike("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._strike("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._strike("sync")
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._strike("truncate")
        super().xTruncate(newsize)

    def xFileSize(self) -> int:  # noqa: N802
        self._strike("size")
        return super().xFileSize()

    def xLock(self, level: int) -> None:  # noqa: N802
        self._strike("lock")
        super().xLock(level)


def _kind(name: Any) -> str:
    path = name.filename() if hasattr(name, "filename") else str(name)
    for ending in ("-wal", "-journal", "-shm"):
        if path.endswith(ending):
            return ending[1:]
    return "temp" if path in ("", "None") else "db"


class SharedMemory:
    """The system calls by which SQLite locks and maps the file that its processes share."""

    def __init__(self, spoiler: Spoiler, vfs: apsw.VFS) -> None:
        self._spoiler = spoiler
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = _MMAP[1:]
        self._calls = (
            ("fcntl", ctypes.CFUNCTYPE(*_FCNTL, use_errno=True)(self._fcntl)),
            ("mmap", ctypes.CFUNCTYPE(*_MMAP, use_errno=True)(self._mmap)),
        )
        for name, call in self._calls:
            vfs.xSetSystemCall(name, ctypes.cast(call, ctypes.c_void_p).value or 0)
        self._vfs = vfs

    def close(self) -> None:
        for name, _ in self._calls:
            self._vfs.xSetSystemCall(name, 0)

    def _fcntl(self, fd: int, command: int, about: int | None) -> int:
        _forget_error()
        if _takes_lock(command, about) and _is_shared(fd) and self._fails("shm-lock"):
            return -1
        return int(self._libc.fcntl(fd, command, ctypes.c_void_p(about)))

    def _mmap(
        self, at: int | None, size: int, protection: int, flags: int, fd: int, offset: int
    ) -> int:
        _forget_error()
        if _is_shared(fd) and self._fails("shm-map"):
            return -1 & (2**64 - 1)
        return int(self._libc.mmap(at, size, protection, flags, fd, offset) or 0)

    def _fails(self, operation: str) -> bool:
        fault = self._spoiler.passes("file", f"shm.{operation}")
        if fault is None:
            return False
        ctypes.set_errno(errno.EAGAIN if fault is Fault.BUSY else errno.EIO)
        return True


def _forget_error() -> None:
    """SQLite calls on while an error that was made up is still to be raised, and nothing of Python works
    then. Its code is enough: SQLite gives that on, and apsw raises its own."""
    try:  # noqa: SIM105 — a call is what does not work just now
        object()
    except SystemError:
        pass


_FCNTL = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
_MMAP = (
    *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_long),
)


def _takes_lock(command: int, about: int | None) -> bool:
    """A lock can be refused; the release of one cannot, and SQLite does not expect it."""
    if command not in (F_SETLK, F_SETLKW) or about is None:
        return False
    return (
        ctypes.c_short.from_address(about).value != F_UNLCK
    )  # `l_type`, the first of the struct


def _is_shared(fd: int) -> bool:
    try:
        return Path(f"/proc/self/fd/{fd}").readlink().name.endswith("-shm")
    except OSError:
        return False
