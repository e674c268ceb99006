"""How documents come in: one by one, many in a form, in an archive, in a folder of this server; each kept by
its content, and called by its name or as a manifest says.

Nothing is held in memory, no name that came with a file is ever a path here, and what is refused is refused
before anything is named: bytes without a name are dropped a day later.
"""

import asyncio
import csv
import hashlib
import os
import re
import stat
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final, TypeVar

from retoma.apps.documents.clients.archives import LITTER, MOST_FILES, Archive, BadArchive
from retoma.apps.documents.clients.multipart import Part, events_of
from retoma.apps.documents.contents import Contents
from retoma.apps.readers.reading import LARGEST
from retoma.apps.tables import plain, read_rows
from retoma.engine.errors import BadInput
from retoma.engine.scratch import scratch
from retoma.text import normalize
from retoma.words import Said, say

T = TypeVar("T")

LONGEST_NAME: Final = 255  # characters
MOST_RAW: Final = (
    4 * LONGEST_NAME
)  # of a name as it was sent: composed, and without folders' dots, it is shorter
LARGEST_ARCHIVE: Final = 2 << 30  # bytes
LARGEST_MANIFEST: Final = 4 << 20
MOST_LINES: Final = 2 * MOST_FILES  # of a manifest, blank ones included
LARGEST_FIELD: Final = 10_000
MOST_FIELDS: Final = 20
MANIFEST: Final = "manifesto.csv"  # what a manifest is called among files
COLUMNS: Final = ("codigo", "arquivo")
PIECE: Final = 256 * 1024
TOLD: Final = 5  # names that an error names


@dataclass(frozen=True, slots=True)
class Incoming:
    """A document whose content is kept."""

    codigo: str
    name: str  # of the file, with the folders it came in
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that was not taken, and why."""

    name: str
    code: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What came in. `fields`: what a form said besides its files."""

    incoming: Sequence[Incoming] = ()
    left_out: Sequence[LeftOut] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


def folders_of(setting: str) -> tuple[Path, ...]:
    """The folders that a setting names, with commas between them; each by its whole path."""
    named = [Path(each.strip()) for each in setting.split(",") if each.strip()]
    if not all(each.is_absolute() for each in named):
        raise BadInput(say("a folder that documents may come from is named by its whole path"))
    return tuple(named)


class Intake:
    """Takes documents in. `roots`: the folders of this server from which it may."""

    def __init__(self, contents: Contents, roots: Iterable[Path] = ()) -> None:
        self._contents = contents
        self._roots = tuple(roots)

    async def file(self, name: str, body: AsyncIterable[bytes]) -> Taken:
        """One file, or an archive of them, as the body of a request."""
        async with _Spool(self._contents) as spool:
            await spool.begin(name)
            async for piece in body:
                await spool.add(piece)
            await spool.end()
            return spool.taken()

    async def form(self, media: str, body: AsyncIterable[bytes]) -> Taken:
        """Many of either, and `manifesto.csv` where there is one, as multipart/form-data."""
        async with _Spool(self._contents) as spool:
            async for event in events_of(media, body):
                match event:
                    case Part(field, file):
                        await spool.begin(file, field)
                    case None:
                        await spool.end()
                    case piece:
                        await spool.add(piece)
            return spool.taken()

    async def archive(self, path: Path) -> Taken:
        """An archive that lies on this machine, for whoever may choose any file of it."""
        async with _Spool(self._contents) as spool:
            await spool.unpack(path)
            return spool.taken()

    async def paths(
        self,
        paths: Iterable[Path],
        manifest: Path | None = None,
        seen: Callable[[int, int], None] = lambda *_: None,
    ) -> Taken:
        """Files, folders and archives that lie on this machine, for whoever may choose any of it.
        `seen` is told how many of how many have come."""
        async with _Spool(self._contents, seen) as spool:
            if manifest is not None:
                await spool.manifest(manifest)
            for path in paths:
                await spool.take(path)
            return spool.taken()

    async def folder(
        self, where: str, seen: Callable[[Incoming], None] = lambda _: None
    ) -> Taken:
        """All files in a folder of this server, and below it; links that lead elsewhere are left out.
        `seen` is told of each as soon as it is kept."""
        root = await _beside(self._allowed, where)
        async with _Spool(self._contents) as spool:
            for path in await _beside(_files_below, root):
                for each in await spool.copy(root, path):
                    seen(each)
            return spool.taken()

    def _allowed(self, where: str) -> Path:
        with suppress(OSError, ValueError, RuntimeError):
            found = Path(where).resolve(strict=True)
            roots = [each.resolve() for each in self._roots]
            if found.is_dir() and any(found.is_relative_to(root) for root in roots):
                return found
        # The same whether it is there or not: nobody learns what this machine has.
        raise BadInput(say("there is no such folder among those that documents may come from"))


class _Spool:
    """Files on their way: each lies on the disk until it is kept."""

    def __init__(
        self, contents: Contents, seen: Callable[[int, int], None] = lambda *_: None
    ) -> None:
        self._contents = contents
        self._seen = seen
        self._came = 0
        self._listed = 0  # by the folders and archives that were looked into
        self._folder: TemporaryDirectory[str] | None = None
        self._open: _Open | None = None
        self._held = bytearray()
        self._incoming: list[Incoming] = []
        self._left_out: list[LeftOut] = []
        self._fields: dict[str, str] = {}
        self._manifest: dict[str, str] | None = None

    async def __aenter__(self) -> "_Spool":
        self._folder = await _beside(
            partial(TemporaryDirectory, prefix="coming-", dir=scratch())
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.file.close()
        if self._folder is not None:
            await _beside(self._folder.cleanup)

    async def begin(self, file: str | None, field: str = "") -> None:
        """A file, or where it has no name a field of a form."""
        if len(self._incoming) + len(self._left_out) >= MOST_FILES:
            raise BadInput(say("more than {most} files at a time", most=MOST_FILES))
        name = None if file is None else clean_name(file)
        opened: BinaryIO = await _beside(_created, self._path)
        self._open = _Open(name, field, opened, _most(name))

    async def add(self, piece: bytes) -> None:
        """Written by larger pieces than the network brings."""
        self._held += piece
        if len(self._held) >= PIECE:
            await self._flush()

    async def _flush(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        await _beside(self._opened.add, held)

    async def end(self) -> None:
        await self._flush()
        opened, self._open = self._opened, None
        await _beside(opened.file.close)
        too_large = opened.too_large
        if opened.name is None:
            await self._field(opened.field, too_large=too_large)
        elif _is_manifest(opened.name):
            await self._manifested(too_large=too_large)
        elif opened.name.lower().endswith(".zip"):
            if too_large:
                raise BadInput(say("an archive has {most} bytes at most", most=opened.most))
            await self.unpack(await _beside(self._path.rename, self._path.with_name("archive")))
        elif too_large:
            self._left_out.append(LeftOut(opened.name, "too_large"))
        else:
            await self._keep(opened)

    async def unpack(self, path: Path, folder: str = "") -> None:
        """`folder`: where the archive lies as if it were one."""
        archive = await _beside(Archive, path)
        self._listed += len(archive.files)
        try:
            for each in archive.files:
                if each.code is not None:
                    self._left_out.append(LeftOut(clean_name(folder + each.name), each.code))
                    self._tell()
                    continue
                await self.begin(folder + each.name)
                whole = await _beside(archive.unpack, each, self._opened.add)
                await self._settle(None if whole else "corrupt")
        finally:
            await _beside(archive.close)

    async def copy(self, root: Path, path: Path) -> Sequence[Incoming]:
        """One file of a folder, or all of an archive that lies in it; what was kept of it."""
        before = len(self._incoming)
        await self.begin(path.relative_to(root).as_posix())
        code = await _beside(_copied, root, path, self._opened.add)
        opened = self._opened
        name = opened.name or ""
        if code is None and name.lower().endswith(".zip") and not opened.too_large:
            await self._unpack_copy(name)
        else:
            await self._settle(code)
        return self._incoming[before:]

    async def _unpack_copy(self, name: str) -> None:
        """An archive of a folder is a folder; one that is broken or means harm leaves the others alone."""
        opened, self._open = self._opened, None
        await _beside(opened.file.close)
        archive = await _beside(self._path.rename, self._path.with_name("archive"))
        try:
            await self.unpack(archive, f"{name[: -len('.zip')]}/")
        except BadArchive:
            self._left_out.append(LeftOut(name, "corrupt"))
        self._tell()

    async def take(self, path: Path) -> None:
        """Whatever lies there: a folder, an archive or one file."""
        real = await _beside(_found, path)
        if await _beside(real.is_dir):
            files = await _beside(_files_below, real)
            self._listed += len(files)
            for each in files:
                await self.copy(real, each)
        elif path.name.lower().endswith(".zip"):
            await self.unpack(real)
        else:
            self._listed += 1
            await self.begin(path.name)
            await self._settle(await _beside(_copied, real.parent, real, self._opened.add))

    async def manifest(self, path: Path) -> None:
        """One that lies beside the files, whatever it is called."""
        real = await _beside(_found, path)
        await self.begin(MANIFEST)
        self._listed += 1
        await self._settle(await _beside(_copied, real.parent, real, self._opened.add))

    def _tell(self) -> None:
        self._came += 1
        self._seen(self._came, self._listed)

    async def _settle(self, code: str | None) -> None:
        """Of an archive or a folder, where an archive stays shut. `code`: why it is left out."""
        opened, self._open = self._opened, None
        await _beside(opened.file.close)
        name = opened.name or ""
        if code is None and name.lower().endswith(".zip"):
            code = "nested"
        if code is None and opened.too_large:
            code = "too_large"
        if code is not None:
            self._left_out.append(LeftOut(name, code))
        elif _is_manifest(name):
            await self._manifested(too_large=False)
        else:
            await self._keep(opened)
        self._tell()

    def taken(self) -> Taken:
        """BadInput where a manifest and the files do not say the same, or two are called alike."""
        if not self._incoming and not self._left_out:
            raise BadInput(say("no file came"))
        incoming = called(self._incoming, self._manifest)
        _check_once(each.codigo for each in incoming)
        return Taken(tuple(incoming), tuple(self._left_out), self._fields)

    async def _keep(self, opened: "_Open") -> None:
        name, sha256 = opened.name or "", opened.digest.hexdigest()
        await self._contents.keep(self._path, sha256, opened.size)
        self._incoming.append(Incoming(name, name, sha256, opened.size))

    async def _manifested(self, *, too_large: bool) -> None:
        if self._manifest is not None or too_large:
            raise BadInput(say("there is one manifest, of {most} bytes", most=LARGEST_MANIFEST))
        self._manifest = await _beside(_manifest_in, self._path)

    async def _field(self, name: str, *, too_large: bool) -> None:
        if too_large or len(self._fields) >= MOST_FIELDS:
            raise BadInput(say("the form says more than anybody asks"))
        said = await _beside(self._path.read_bytes)
        self._fields[name] = said.decode("utf-8", "replace").replace("\0", "")

    @property
    def _path(self) -> Path:
        if self._folder is None:
            raise RuntimeError("the spool is not open")
        return Path(self._folder.name) / "file"

    @property
    def _opened(self) -> "_Open":
        if self._open is None:
            raise RuntimeError("no file has begun")
        return self._open


class _Open:
    """One that is being written, counted and digested."""

    def __init__(self, name: str | None, field: str, file: BinaryIO, most: int) -> None:
        self.name = name
        self.field = field
        self.file = file
        self.most = most
        self.size = 0
        self.digest = hashlib.sha256()

    @property
    def too_large(self) -> bool:
        return self.size > self.most

    def add(self, piece: bytes) -> bool:
        """Whether more of it is wanted: what is larger than it may be is written no further."""
        self.size += len(piece)
        if self.too_large:
            return False
        self.digest.update(piece)
        self.file.write(piece)
        return True


def _created(path: Path) -> BinaryIO:
    return path.open("wb")


# — names —


def clean_name(raw: str) -> str:
    """What a file is called, with its folders: never a path of ours, always something to read."""
    if len(raw) > MOST_RAW:
        raise _long_name(raw)
    shown = "".join(each for each in normalize("NFC", raw) if each.isprintable())
    parts = [part.strip() for part in re.split(r"[/\\]", shown)]
    name = "/".join(part for part in parts if part not in ("", ".", ".."))
    if not name:
        raise BadInput(say("a file has no name"))
    if len(name) > LONGEST_NAME:
        raise _long_name(name)
    return name


def _long_name(name: str) -> BadInput:
    return BadInput(
        say("a name has {most} characters at most: {name}…", most=LONGEST_NAME, name=name[:80])
    )


def _is_manifest(name: str) -> bool:
    return PurePosixPath(name).name.casefold() == MANIFEST


def _most(name: str | None) -> int:
    if name is None:
        return LARGEST_FIELD
    if _is_manifest(name):
        return LARGEST_MANIFEST
    return LARGEST_ARCHIVE if name.lower().endswith(".zip") else LARGEST


def _manifest_in(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return read_manifest(file)


def read_manifest(file: BinaryIO) -> dict[str, str]:
    """`codigo` by `arquivo`; BadInput says which line says nothing, or what is said twice."""
    rows = read_rows(file, most=MOST_LINES, refusal=say("the manifest is no text"))
    found: dict[str, str] = {}
    number, has_heading = 1, False
    try:
        for number, row in rows:
            cells = [cell.strip() for cell in row]
            if not has_heading:
                if tuple(plain(cell) for cell in cells) != COLUMNS:
                    raise _no_manifest(1)
                has_heading = True
            elif any(cells):
                _add_line(found, number, cells)
    except csv.Error:
        raise _no_manifest(number + 1) from None
    if not has_heading:
        raise _no_manifest(1)
    return found


def _add_line(found: dict[str, str], number: int, cells: Sequence[str]) -> None:
    if len(cells) != len(COLUMNS) or not all(cells) or len(found) >= MOST_FILES:
        raise _no_manifest(number)
    codigo, file = clean_name(cells[0]), clean_name(cells[1])
    if file in found:
        raise BadInput(say("the manifest names {file} twice", file=file))
    found[file] = codigo


def _no_manifest(line: int) -> BadInput:
    return BadInput(
        say(
            "line {line} of the manifest: it has the columns codigo and arquivo, and both in"
            " every line",
            line=line,
        )
    )


def called(
    incoming: Sequence[Incoming], manifest: Mapping[str, str] | None
) -> Sequence[Incoming]:
    """By their manifest, which names all of them, and nothing else."""
    if manifest is None:
        return incoming
    came = {each.name for each in incoming}
    missing, unnamed = sorted(manifest.keys() - came), sorted(came - manifest.keys())
    if missing:
        raise BadInput(
            say("the manifest names what did not come: {names}", names=_some(missing))
        )
    if unnamed:
        raise BadInput(say("the manifest does not name: {names}", names=_some(unnamed)))
    return [replace(each, codigo=manifest[each.name]) for each in incoming]


def _check_once(codes: Iterable[str]) -> None:
    seen, twice = set[str](), set[str]()
    for code in codes:
        (twice if code in seen else seen).add(code)
    if twice:
        raise BadInput(
            say(
                "two documents are called alike; nothing was taken: {names}", names=_some(twice)
            )
        )


def _some(names: Iterable[str]) -> Said | str:
    ordered = sorted(names)
    shown = ", ".join(ordered[:TOLD])
    more = len(ordered) - TOLD
    return say("{shown} and {more} more", shown=shown, more=more) if more > 0 else shown


# — folders —


def _found(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise BadInput(say("{path}: there is no such file or folder", path=path)) from None


def _files_below(root: Path) -> list[Path]:
    found: list[Path] = []
    for path in _walked(root):
        found.append(path)
        if len(found) > MOST_FILES:
            raise BadInput(say("more than {most} files at a time", most=MOST_FILES))
    return found


def _walked(root: Path) -> Iterator[Path]:
    """Links to folders are not gone into: they may lead in a circle."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder) / name
            if not name.startswith(".") and not LITTER.search(path.as_posix()):
                yield path


def _copied(root: Path, path: Path, add: Callable[[bytes], bool]) -> str | None:
    """None, or why it was not: what is no file would keep us for ever, what leads out is not ours."""
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root):
            return "link"
        # Not waiting for a pipe, not following a link that was put there meanwhile.
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (OSError, RuntimeError):
        return "unreadable"
    with os.fdopen(handle, "rb") as file:
        told = os.fstat(file.fileno())
        if not stat.S_ISREG(told.st_mode):
            return "unsupported"
        while (piece := file.read(PIECE)) and add(piece):
            pass
    return None


async def _beside(work: Callable[..., T], *args: object) -> T:
    """In a thread: a disk may be slow."""
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *args))
