"""Files that nobody needs after this process: in a folder of its own, which goes however it ends.

Who is killed cannot tidy up. So a process holds a lock on its folder for as long as it lives, whatever its
number is and in whichever container; a folder whose lock anybody can have belongs to nobody any more, and
whoever comes next removes it.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

PREFIX = "retoma-scratch-"

_ours: dict[int, Path] = {}  # by process: one that was forked has another than its parent


def scratch() -> Path:
    """The folder of this process; others may remove it once it is gone."""
    me = os.getpid()
    if me not in _ours:
        sweep()
        _ours.clear()
        _ours[me] = _made()
    return _ours[me]


def sweep() -> int:
    """Remove what the dead have left; how many folders that were."""
    return sum(_removed(each) for each in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


def _made() -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_EX)
        if folder.exists():
            atexit.register(partial(_forget, os.getpid(), folder))
            return folder  # its lock is held until this process has ended
        os.close(held)  # somebody has swept between the two


def _removed(folder: Path) -> bool:
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # gone, no folder, or of somebody else
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    finally:
        os.close(held)


def _forget(owner: int, folder: Path) -> None:
    if os.getpid() == owner:
        with suppress(OSError):
            shutil.rmtree(folder)
