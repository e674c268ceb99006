"""The worker's own log: sessions and scrapes begun and ended, each line before anybody is answered.

Append-only, one JSON object a line. Whoever doubts what a worker did asks this file.
"""

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

FILE: Final = "worker.jsonl"
Tell = Callable[..., Awaitable[None]]  # an event, and what is known of it


class Logbook:
    """Lines in the order in which things happened."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def tell(self, event: str, at: datetime, **what: Any) -> None:
        line = json.dumps({"at": at.isoformat(), "event": event, **what}, ensure_ascii=False)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> Iterator[dict[str, Any]]:
        """A line that a crash has cut short is nobody's."""
        if not self._file.exists():
            return
        with self._file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    continue

    def unended(self, what: str, named: str) -> list[str]:
        """Scrapes, or sessions, that this log has seen begin and not end."""
        begun: dict[str, None] = {}
        for line in self.read():
            if line.get("event") == f"{what}.began":
                begun[line[named]] = None
            elif line.get("event") == f"{what}.ended":
                begun.pop(line[named], None)
        return list(begun)
