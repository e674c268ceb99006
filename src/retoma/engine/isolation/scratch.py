"""A private folder for each process, which goes however the process ends.

A process that is killed cannot tidy up. So each holds a lock on its folder for as long as it lives, whatever
its number is and in whichever container; a folder of ours whose lock is free is left over from a dead
process, and the next process removes it. `mkdtemp` names the folder: nobody can take the name first, and
a folder of another user is never touched, whatever it is called.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

PREFIX = "retoma-scratch-"
KEEP = "keep-"  # the beginning of a file's name that outlives its process
KEPT_SECONDS = 24 * 60 * 60.0  # long enough for whoever is to read it
LOOKED_AT = 10_000  # folders at most: other users may make as many as they like

_ours: dict[int, Path] = {}  # by process: one that was forked has another than its parent
_making = threading.Lock()


def scratch() -> Path:
    """The folder of this process; others may remove it once it is gone."""
    with _making:
        me = os.getpid()
        if me not in _ours:
            sweep()
            _ours.clear()
            _ours[me] = _made()
        return _ours[me]


def sweep() -> int:
    """Remove what dead processes of this user have left; how many folders that were."""
    return sum(_removed(each) for each in _folders())


def find_kept(name: str) -> Path | None:
    """The file that a process of this user keeps under this name, whether it lives or not."""
    files = (each / f"{KEEP}{name}" for each in _folders())
    return next((each for each in files if each.is_file()), None)


def forget_kept(name: str) -> None:
    """Remove that file, and with it the folder where its process is dead."""
    file = find_kept(name)
    if file is not None:
        with suppress(OSError):
            file.unlink()
        _removed(file.parent)


def kept_file(name: str) -> Path:
    """Where this process is to write what others shall find by `find_kept`."""
    return scratch() / f"{KEEP}{name}"


def _folders() -> Iterator[Path]:
    """Folders of this user; nobody else may enter those."""
    for each in islice(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"), LOOKED_AT):
        with suppress(OSError):
            if each.lstat().st_uid == os.geteuid() and not each.is_symlink():
                yield each


def _made() -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):  # another process has swept before it was opened …
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(held, fcntl.LOCK_EX)
            if folder.exists():
                atexit.register(partial(_forget, os.getpid(), folder))
                return folder  # its lock is held until this process has ended
            os.close(held)  # … or before it was locked


def _removed(folder: Path) -> bool:
    with suppress(OSError), _lock_of(folder):
        if not _is_kept(folder):
            shutil.rmtree(folder, ignore_errors=True)
            return not folder.exists()
    return False


@contextmanager
def _lock_of(folder: Path) -> Iterator[None]:
    """The folder of a dead process; an OSError where it is none, or gone, or its process lives."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(held)


def _is_kept(folder: Path) -> bool:
    """Whether somebody may still come for what its process has left on purpose."""
    left = [each.stat() for each in folder.glob(f"{KEEP}*")]
    written = [each.st_mtime for each in left if each.st_size]
    return bool(written) and max(written) > _now(folder) - KEPT_SECONDS


def _now(folder: Path) -> float:
    """The time by the clock of the file system, which has dated those files too."""
    os.utime(folder)
    return folder.stat().st_mtime


def _forget(owner: int, folder: Path) -> None:
    if os.getpid() == owner:
        with suppress(OSError):
            shutil.rmtree(folder)
