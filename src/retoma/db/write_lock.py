"""The lock that lets one process at a time write a SQLite file.

SQLite's own lock makes waiting processes sleep and look again; `flock` hands over at once. But `flock` waits
without end, and a process that is frozen or stopped in the middle of a write would hold up all others unseen.
So a thread of its own waits where another process has the lock, and its owner gives up after a while.
"""

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

from retoma.db.database import Away, Busy
from retoma.db.wakeups import share_as

LOCKS = Path("/proc/locks")


class WriteLock:
    """For one thread of this process. Taken and released around each transaction."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience  # seconds
        self._file = _open(path)
        self._changed = threading.Condition()
        self._waiting = False  # the thread below waits in flock, or is about to
        self._wanted = False  # by the owner, still
        self._handed_over = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Return when this process may write. Raises Busy after `patience` seconds."""
        with self._changed:
            if not self._waiting:
                if self._taken_at_once():
                    return
                self._wait_elsewhere()
            self._wanted = True
            handed_over = self._changed.wait_for(lambda: self._handed_over, self._patience)
            self._wanted = self._handed_over = False
        if not handed_over:
            raise Busy(
                f"{self._path}: {_holder_of(self._file)} has kept others from writing for"
                f" {self._patience:g} s; is it stopped or frozen? End it or let it go on"
            )

    def release(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close it. A thread that still waits closes the file when it is let in."""
        with self._changed:
            self._closed = True
            if not self._waiting:
                os.close(self._file)
            self._changed.notify_all()

    def _taken_at_once(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_elsewhere(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._wait, name="retoma-write-lock", daemon=True)
            try:
                thread.start()
            except (
                RuntimeError
            ) as error:  # the system has none left; the next attempt may find one
                raise Away(f"{self._path} cannot be written: {error}") from error
            self._thread = thread
        self._waiting = True
        self._changed.notify_all()

    def _wait(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
            fcntl.flock(self._file, fcntl.LOCK_EX)
            with self._changed:
                self._waiting = False
                if self._closed:
                    os.close(self._file)
                    return
                if self._wanted:
                    self._handed_over = True
                    self._changed.notify_all()
                else:
                    fcntl.flock(self._file, fcntl.LOCK_UN)


def _open(path: Path) -> int:
    """Open the lock file, or make it for all who may write the database."""
    file, how = Path(f"{path}-turn"), os.O_RDWR | os.O_NOFOLLOW
    try:
        made = os.open(file, how | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(file, how)
    share_as(path, made)
    return made


def _holder_of(file: int) -> str:
    """The process that holds the lock, as the kernel lists it; "another process" where it does not say."""
    inode = str(os.fstat(file).st_ino)
    with suppress(OSError):
        for line in LOCKS.read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[3] == "WRITE" and words[5].endswith(f":{inode}"):
                return f"process {words[4]}"
    return "another process"
