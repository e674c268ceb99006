"""Files: each is kept by its content, and classified once an execution names it."""

from collections.abc import AsyncIterable, Callable, Iterable
from pathlib import Path

from retoma.apps.documents.contents import Contents
from retoma.apps.documents.intake import Intake, Taken, folders_of
from retoma.library import Retoma


async def import_file(retoma: Retoma, name: str, body: AsyncIterable[bytes]) -> Taken:
    """Keep one file, or the files of an archive."""
    return await Intake(Contents(retoma)).file(name, body)


async def import_form(retoma: Retoma, media: str, body: AsyncIterable[bytes]) -> Taken:
    """Keep the files of a multipart/form-data body."""
    return await Intake(Contents(retoma)).form(media, body)


async def import_folder(retoma: Retoma, folder: str, *, allowed: str) -> Taken:
    """Keep all files in a folder of this server, and below it. `allowed`: RETOMA_DOCUMENT_FOLDERS."""
    return await Intake(Contents(retoma), folders_of(allowed)).folder(folder)


async def import_paths(
    retoma: Retoma,
    paths: Iterable[Path],
    manifest: Path | None = None,
    seen: Callable[[int, int], None] = lambda *_: None,
) -> Taken:
    """Keep files, folders and archives of this machine. `seen` gets how many of how many have come."""
    return await Intake(Contents(retoma)).paths(paths, manifest, seen)
