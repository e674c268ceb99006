"""Wake the processes that share a SQLite file: one datagram socket for each process that listens.

The sockets lie in a folder beside the file, `work.db-wake`, as SQLite's own `-wal` and `-shm` do. So every
process that can write the file finds them, whatever its user, its temp folder or its container, and
nobody else can make the folder first. Where no socket can be made only the tick finds new work.
"""

import errno
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from retoma.db.database import EVERYTHING
from retoma.db.poll import wait_readable

ENDING = "-wake"
TRIES = 20  # to make the folder while its last listener removes it
DESCRIPTORS = Path(
    "/proc/self/fd"
)  # a way to a socket without the 108 bytes that its path may have
MESSAGE = 65_536  # bytes
LOOK_AGAIN = 2.0  # seconds until a socket whose name was taken away is made anew


class Wakeups:
    """Sends topics to every process that listens for one database, and listens for its own."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._folder = Path(f"{database}{ENDING}")
        self._interrupt, self._interrupted = socket.socketpair()
        try:
            self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError:
            self._interrupt.close()
            self._interrupted.close()
            raise
        for each in (self._interrupt, self._interrupted, self._sender):
            each.setblocking(False)
        self._listening: _Listening | None = None
        self._waited = False
        self._lock = threading.Lock()

    def send(self, topics: set[str]) -> None:
        """Wake every listener. Never raises: the commit it tells of has happened."""
        message = "\n".join(sorted(topics)).encode()
        with suppress(OSError), self._opened() as folder, os.scandir(folder) as entries:
            for entry in entries:
                self._send(message, folder, entry.name)

    def wait(self, seconds: float) -> set[str]:
        """The topics since the last call; `EVERYTHING` where some may have been missed. May return
        before `seconds` are over without any."""
        if self._listen_anew() or not self._waited:
            self._waited = True
            return {EVERYTHING}
        listening = self._listening
        heard = (
            [self._interrupted] if listening is None else [self._interrupted, listening.socket]
        )
        wait_readable([each.fileno() for each in heard], min(seconds, LOOK_AGAIN))
        _received(self._interrupted)
        return set() if listening is None else _received(listening.socket)

    def interrupt(self) -> None:
        """End a wait in another thread, or the next one."""
        with suppress(OSError):  # it is full of interrupts, or closed
            self._interrupt.send(b"\n")

    def can_listen(self) -> bool:
        self._listen_anew()
        return self._listening is not None

    def close(self) -> None:
        """Stop listening; the last listener takes the folder along."""
        for each in (self._sender, self._interrupt, self._interrupted):
            each.close()
        with self._lock:
            listening, self._listening = self._listening, None
        if listening is not None:
            listening.socket.close()
            if listening.is_at(self._folder):
                with suppress(OSError):
                    (self._folder / listening.name).unlink()
        with suppress(OSError):
            self._folder.rmdir()

    def _listen_anew(self) -> bool:
        """Whether a new socket was made: the first one, or because the folder was taken away."""
        with self._lock:
            if self._listening is not None:
                if self._listening.is_at(self._folder):
                    return False
                self._listening.socket.close()
            self._listening = self._listen()
            return self._listening is not None

    def _listen(self) -> "_Listening | None":
        for _ in range(TRIES):
            try:
                self._make_folder()
                with self._opened() as folder:
                    return self._bind(folder)
            except FileNotFoundError:
                continue
            except OSError:
                break
        return None

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(mode=0o700)
        except FileExistsError:
            return
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            share_as(self._database, folder)
        finally:
            os.close(folder)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The folder's descriptor; PermissionError where others may write to it than to the file."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            ours, file = os.fstat(folder), self._database.stat()
            known = ours.st_uid in (0, os.geteuid(), file.st_uid)
            if file.st_mode & stat.S_IWGRP and ours.st_gid == file.st_gid:
                known = True
            if not known or ours.st_mode & ~file.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(errno.EACCES, "not a folder of ours", str(self._folder))
            yield folder
        finally:
            os.close(folder)

    def _bind(self, folder: int) -> "_Listening":
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            listening.setblocking(False)
            for number in count():
                name = f"{os.getpid()}-{number}"
                try:
                    listening.bind(self._way_to(folder, name))
                    break
                except OSError as error:  # of another container, or left by a dead process
                    if error.errno != errno.EADDRINUSE:
                        raise
            share_as(self._database, self._way_to(folder, name))
            made = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except BaseException:
            listening.close()
            raise
        return _Listening(listening, name, (made.st_dev, made.st_ino))

    def _send(self, message: bytes, folder: int, name: str) -> None:
        try:
            self._sender.sendto(message, self._way_to(folder, name))
        except (ConnectionRefusedError, FileNotFoundError):
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)  # its process is gone
        except OSError:
            pass  # it is full of wake-ups already, or not ours to wake

    def _way_to(self, folder: int, name: str) -> str:
        if DESCRIPTORS.exists():
            return f"{DESCRIPTORS}/{folder}/{name}"
        return f"{self._folder}/{name}"


class _Listening:
    """A socket that is bound, and which file it was bound to."""

    def __init__(self, bound: socket.socket, name: str, file: tuple[int, int]) -> None:
        self.socket = bound
        self.name = name
        self._file = file

    def is_at(self, folder: Path) -> bool:
        """Whether whoever looks into the folder still finds this very socket."""
        try:
            found = (folder / self.name).lstat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._file


def share_as(database: Path, made: int | str) -> None:
    """Let those who may write the database use what we have made beside it, and nobody else.

    As SQLite does with its `-wal`: what root makes belongs to the owner of the database.
    """
    file = database.stat()
    rights = file.st_mode & 0o666
    if stat.S_ISDIR(os.stat(made).st_mode):  # noqa: PTH116 — or a descriptor
        writers = file.st_mode & 0o222
        rights = writers | writers << 1 | writers >> 1
    owner = file.st_uid if os.geteuid() == 0 else -1
    with suppress(PermissionError):  # not a group of ours
        os.chown(made, owner, file.st_gid)
    os.chmod(made, rights)  # noqa: PTH101 — the same; last, as a change of the owner takes rights away


def _received(from_: socket.socket) -> set[str]:
    topics: set[str] = set()
    with suppress(BlockingIOError):
        while True:
            topics.update(filter(None, from_.recv(MESSAGE).decode().split("\n")))
    return topics
