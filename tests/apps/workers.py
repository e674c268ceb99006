"""A Celery worker with the jobs of an application, as its document starts one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tests import nursery
from tests.house.files import ROOT


@contextmanager
def worker(
    fleet: ModuleType, told: dict[str, Any], folder: Path, concurrency: int
) -> Iterator[Path]:
    """`celery worker --pool=prefork --concurrency=…`, with Beat inside; its log."""
    log = folder / "worker.log"
    options = ["--pool=prefork", f"--concurrency={concurrency}", "-B", "-s", f"{folder}/beat"]
    quiet = ["--loglevel=WARNING", "--without-gossip", "--without-mingle", f"-Q{told['queue']}"]
    command = ["-m", "celery", "-A", fleet.__name__, "worker", *options, *quiet]
    with log.open("wb") as file:
        started = nursery.Born(
            [sys.executable, *command],
            cwd=ROOT,
            env=os.environ
            | {
                fleet.TOLD: json.dumps(told),
                "TMPDIR": str(folder),
            },  # killed, it clears up nothing
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        nursery.kill_session(started)
