"""Disk usage of the database and the evidence, free space, and the retention periods."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from retoma import db
from retoma.engine.query import Disk
from retoma.library import Retoma
from retoma.settings import Settings

FOLDER: Final = "folder"
WAL: Final = "-wal"
KEEP: Final = ("keep_done", "keep_dead", "keep_events")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSeen:
    """Disk usage in bytes; None if this process cannot know."""

    disk: Disk
    file: str | None  # path of the database, if it is a file
    wal: int | None  # size of the write-ahead log
    left: int | None  # free on the disk of that file
    shelf: str  # where evidence is stored: database, folder or s3
    shelf_left: int | None  # free on the disk of that folder
    keep: Mapping[str, float | None]  # retention periods in seconds; None: for ever

    @property
    def document(self) -> dict[str, Any]:
        """All values as one flat document."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return asdict(own.pop("disk")) | own


async def disk_seen(retoma: Retoma, chosen: Settings) -> DiskSeen:
    """Read the disk usage. The cost does not grow with the number of jobs."""
    disk, keep = await retoma.insights.disk(), await retoma.knobs.values(*KEEP)
    file = db.file_of(retoma.url)
    where = urlsplit(chosen.evidence)
    folder = Path(unquote(where.path)) if where.scheme == FOLDER else None
    return DiskSeen(
        disk=disk,
        file=None if file is None else str(file),
        wal=None if file is None else _size(file.with_name(file.name + WAL)),
        left=None if file is None else _left(file.parent),
        shelf=where.scheme or chosen.evidence,
        shelf_left=None if folder is None else _left(folder),
        keep=dict(zip(KEEP, keep, strict=True)),
    )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _left(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
