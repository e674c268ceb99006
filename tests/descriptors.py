"""A process that has opened many files, or may open only a few more."""

import gc
import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SELECTABLE = 1024  # descriptors that `select.select` knows
ROOM = 8192


@contextmanager
def many_open_files() -> Iterator[None]:
    """Whatever is opened inside has a number that `select.select` does not know."""
    with _limit(ROOM), ExitStack() as stack:
        null = Path(os.devnull)
        while stack.enter_context(null.open()).fileno() < SELECTABLE:
            pass
        yield


@contextmanager
def files_left(many: int) -> Iterator[None]:
    """Only so many more files can be opened inside: EMFILE after that."""
    gc.collect()  # what nobody refers to any more is closed now, not inside
    with ExitStack() as stack:
        free = [stack.enter_context(Path(os.devnull).open()).fileno() for _ in range(many + 1)]
        stack.close()
        with _limit(max(free)):
            yield


@contextmanager
def _limit(files: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
