"""The worker's own log of sessions and scrapes. Each event is written before the request is answered.

Append-only, one JSON object per line.
"""

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

FILE: Final = "worker.jsonl"
RecordEvent = Callable[..., Awaitable[None]]  # an event and its fields


class Logbook:
    """Reads and writes the log."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def record(self, event: str, at: datetime, **fields: Any) -> None:
        line = json.dumps({"at": at.isoformat(), "event": event, **fields}, ensure_ascii=False)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events. Skips a line that a crash left incomplete."""
        if not self._file.exists():
            return
        with self._file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    continue

    def unended(self, what: str, named: str) -> list[str]:
        """Return the scrapes or sessions that began and did not end."""
        begun: dict[str, None] = {}
        for line in self.read():
            if line.get("event") == f"{what}.began":
                begun[line[named]] = None
            elif line.get("event") == f"{what}.ended":
                begun.pop(line[named], None)
        return list(begun)
