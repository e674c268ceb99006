"""Everything a house needs to begin again, in one file: its database, its evidence, its key.

A backup is a plain tar. `SHA256SUMS` has the hash of every member before it, `manifest.json` comes
last and has the hash of those sums: a file without it was not finished. A restore reads all of it
before it writes anything, and fills the database last, at once: until then there is none.
"""

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from retoma.db import Transaction, adhoc, copies
from retoma.db.copies import About, Applied, In, Table
from retoma.db.migrations import Room, migrations
from retoma.engine import store
from retoma.engine.rules.errors import BadInput, IllegalMove
from retoma.engine.store import Reopened
from retoma.shelves import PLACE
from retoma.words import say

FORMAT = 1
BLOCK = 1 << 20  # bytes
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
KEY = "secret.key"
EVIDENCE = "evidence/"
DATABASE = "database/"
LONGEST = 16 << 20  # bytes of a manifest
KEY_BYTES = 65_536
MEMBER = re.compile(
    rf"{DATABASE}[A-Za-z0-9_]{{1,63}}\.(copy|db)|{EVIDENCE}{PLACE.pattern}"
    rf"|{re.escape(KEY)}|{SUMS}|{re.escape(MANIFEST)}"
)
# How many jobs nobody knows of may have been submitted since: more than a house can write.
A_SECOND = 100_000
AT_LEAST = 1_000_000

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a house keeps what is to be saved, or will."""

    url: str
    evidence: str  # as the setting says it
    key_file: Path | None = None  # None: the key is given by the environment, or is not wanted


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the database, or the key."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup says of itself."""

    format: int
    retoma: str
    about: About
    tables: tuple[Table, ...]
    members: tuple[Member, ...]
    evidence: Mapping[str, Any]
    sums: str

    @property
    def text(self) -> str:
        about = asdict(self.about)
        told = {"format": self.format, "retoma": self.retoma, **about} | {
            "at": self.about.at.isoformat(),
            "tables": [asdict(each) for each in self.tables],
            "members": [asdict(each) for each in self.members],
            "evidence": dict(self.evidence),
            "sums": self.sums,
        }
        return json.dumps(told, ensure_ascii=False, indent=1)

    @property
    def document(self) -> dict[str, Any]:
        """What a person wants to know of it."""
        return {
            "format": self.format,
            "retoma": self.retoma,
            "dialect": self.about.dialect,
            "database_id": self.about.database,
            "at": self.about.at.isoformat(),
            "migrations": {room: self.about.newest(room) for room in self.about.rooms},
            "rows": {each.name: each.rows for each in self.tables},
            "evidence": dict(self.evidence),
            "secret_key": any(each.name == KEY for each in self.members),
        }


# — out —


def back_up(place: Place, file: Path, tell: Progress = lambda *_: None) -> Manifest:
    """Write everything into `file`, which appears when it is whole; over nothing."""
    _refuse_taken(file)
    with _half(file) as (half, path, beside):
        written = _write(place, half, beside, tell)
        half.flush()
        os.fsync(half.fileno())
        try:
            os.link(path, file)
        except FileExistsError:
            _refuse_taken(file)
    _sync(file.parent)
    return written


def _refuse_taken(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise IllegalMove(
            say("{file} is there already: a backup is written over nothing", file=file)
        )
    if not file.parent.is_dir():
        raise BadInput(say("{path}: its folder does not exist", path=file))


@contextmanager
def _half(file: Path) -> Iterator[tuple[IO[bytes], Path, Path]]:
    """What is not whole yet, its path, and a folder for what goes into it: gone in the end."""
    path, beside = (file.with_name(f"{file.name}.{end}") for end in ("part", "copying"))
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "r+b") as half:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IllegalMove(say("somebody writes {file} just now", file=path)) from None
        os.fchmod(number, 0o600)
        half.truncate()  # of somebody who was killed in the middle
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        try:
            yield half, path, beside
        finally:
            shutil.rmtree(beside, ignore_errors=True)
            path.unlink(missing_ok=True)


def _write(place: Place, half: IO[bytes], beside: Path, tell: Progress) -> Manifest:
    key = _read_key(place.key_file)
    with (beside / SUMS).open("w+b") as sums, copies.copy_out(place.url, beside) as out:
        packed = _Pack(half, sums, out.about.at, tell)
        tables: list[Table] = []
        members: list[Member] = []
        for piece in out.pieces():
            members.append(packed.add_file(f"{DATABASE}{piece.path.name}", piece.path))
            tables += piece.tables
            piece.path.unlink()
        # After the database: whatever it knows of is on the shelf by now.
        evidence = _add_evidence(packed, place.evidence)
        if key is not None:
            if key != _read_key(place.key_file):
                raise IllegalMove(
                    say("the secret key was turned while it was copied: back up once more")
                )
            members.append(packed.add(KEY, key))
        made = Manifest(
            format=FORMAT,
            retoma=version("retoma"),
            about=out.about,
            tables=tuple(tables),
            members=tuple(members),
            evidence=evidence,
            sums=packed.add_sums(),
        )
        packed.add(MANIFEST, made.text.encode())
        packed.close()
        return made


def _read_key(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _add_evidence(packed: "_Pack", where: str) -> dict[str, Any]:
    folder = _folder(where)
    files = size = 0
    if folder is not None and folder.is_dir():
        for short in sorted(folder.iterdir()):
            for path in sorted(short.iterdir()) if short.is_dir() else ():
                name = f"{short.name}/{path.name}"
                if PLACE.fullmatch(name):
                    with suppress(FileNotFoundError):  # its time was over meanwhile
                        size += packed.add_file(f"{EVIDENCE}{name}", path).size
                        files += 1
    inside = folder is not None or where == "database"
    return {"where": where, "included": inside, "files": files, "bytes": size}


def _folder(where: str) -> Path | None:
    parts = urlsplit(where)
    return Path(unquote(parts.path)) if parts.scheme == "folder" else None


class _Pack:
    """A tar that grows, and the sums of what is in it."""

    def __init__(self, half: IO[bytes], sums: IO[bytes], at: datetime, tell: Progress) -> None:
        self._tar: Any = tarfile.open(fileobj=half, mode="w")  # noqa: SIM115 — closed by close()
        self._sums = sums
        self._at = at.timestamp()
        self._tell = tell

    def add_file(self, name: str, path: Path) -> Member:
        with path.open("rb") as file:
            return self._add(name, file, os.fstat(file.fileno()).st_size)

    def add(self, name: str, data: bytes) -> Member:
        return self._add(name, io.BytesIO(data), len(data))

    def add_sums(self) -> str:
        self._sums.flush()
        self._sums.seek(0)
        return self._add(SUMS, self._sums, os.fstat(self._sums.fileno()).st_size).sha256

    def close(self) -> None:
        self._tar.close()

    def _add(self, name: str, file: Any, size: int) -> Member:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, 0o600, int(self._at)
        hashed = _Hashed(file, lambda n: self._tell(name, n))
        self._tar.addfile(info, hashed)
        # A tar keeps what it has seen in memory, for a look back that nobody takes here.
        self._tar.members = []
        if name not in (SUMS, MANIFEST):
            self._sums.write(f"{hashed.sha256}  {name}\n".encode())
        return Member(name, size, hashed.sha256)


class _Hashed:
    """A file that is hashed as it is read."""

    def __init__(self, file: Any, tell: Callable[[int], None]) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._tell = tell

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._file.read(size)
        self._sum.update(block)
        self._tell(len(block))
        return block

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()


# — in —


@dataclass(slots=True)
class Backup:
    """A file that was read to its end and is as it was written."""

    file: Path
    manifest: Manifest
    _tar: tarfile.TarFile
    _members: dict[str, tarfile.TarInfo] = field(default_factory=dict)

    def open(self, name: str) -> IO[bytes]:
        return _bytes_of(self._tar, self._members[name])

    def evidence(self) -> Iterator[tuple[str, IO[bytes]]]:
        for member in _members(self._tar):
            if member.name.startswith(EVIDENCE):
                yield member.name.removeprefix(EVIDENCE), _bytes_of(self._tar, member)


@contextmanager
def opened(file: Path, tell: Progress = lambda *_: None) -> Iterator[Backup]:
    """A backup, with every byte of it checked."""
    try:
        raw = file.open("rb")
    except OSError as error:
        raise BadInput(say("{file}: {why}", file=file, why=error.strerror)) from None
    with raw:
        try:
            with tarfile.open(fileobj=raw, mode="r:") as tar:
                yield _checked(file, tar, tell)
        except (tarfile.TarError, EOFError) as error:
            raise _damaged(file, str(error)) from error


def _checked(file: Path, tar: tarfile.TarFile, tell: Progress) -> Backup:
    found: dict[str, tarfile.TarInfo] = {}
    got: dict[str, str] = {}
    sums = hashlib.sha256()
    for member in _members(tar):
        _refuse_strange(file, member, found)
        hashed = _Hashed(_bytes_of(tar, member), lambda n: tell(file.name, n))
        while hashed.read(BLOCK):
            pass
        if not member.name.startswith(EVIDENCE):
            found[member.name], got[member.name] = member, hashed.sha256
        if member.name not in (SUMS, MANIFEST):
            sums.update(f"{hashed.sha256}  {member.name}\n".encode())
    if MANIFEST not in found or SUMS not in found:
        raise _damaged(file, "it has no end")
    made = Backup(file, _manifest(file, tar, found[MANIFEST]), tar, found)
    for each in made.manifest.members:
        if got.get(each.name) != each.sha256:
            raise _damaged(file, f"{each.name} is not what was written")
    if not got[SUMS] == made.manifest.sums == sums.hexdigest():
        raise _damaged(file, "some of its files are not what was written")
    return made


def _members(tar: Any) -> Iterator[tarfile.TarInfo]:
    """From the first on, one at a time and none remembered, however many there are."""
    tar.fileobj.seek(0)
    tar.offset, tar.firstmember = 0, None
    while (member := tar.next()) is not None:
        tar.members = []
        yield member


def _bytes_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = tar.extractfile(member)
    if found is None:
        raise tarfile.ReadError(f"{member.name} has no bytes")
    return found


def _refuse_strange(
    file: Path, member: tarfile.TarInfo, found: Mapping[str, tarfile.TarInfo]
) -> None:
    if not (member.isreg() and MEMBER.fullmatch(member.name)) or member.name in found:
        raise BadInput(
            say(
                "{file} is no backup of retoma: it has a member {name!r}; nothing was changed",
                file=file,
                name=member.name[:100],
            )
        )


def _damaged(file: Path, why: str) -> BadInput:
    return BadInput(say("{file} is damaged ({why}); nothing was changed", file=file, why=why))


def _manifest(file: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Manifest:
    try:
        told = json.loads(_bytes_of(tar, member).read(LONGEST))
        if told["format"] > FORMAT:
            raise BadInput(
                say(
                    "{file} is a backup of format {format}, this retoma reads up to {known}:"
                    " restore it with retoma {version} or a newer one; nothing was changed",
                    file=file,
                    format=told["format"],
                    known=FORMAT,
                    version=told.get("retoma", "?"),
                )
            )
        about = About(
            told["dialect"],
            told["database"],
            datetime.fromisoformat(told["at"]),
            tuple(Applied(**each) for each in told["applied"]),
            told["ids"],
        )
        return Manifest(
            format=told["format"],
            retoma=told["retoma"],
            about=about,
            tables=tuple(
                Table(each["name"], each["rows"], tuple(each["columns"]))
                for each in told["tables"]
            ),
            members=tuple(Member(**each) for each in told["members"]),
            evidence=told["evidence"],
            sums=told["sums"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(file, f"its manifest says {type(error).__name__}") from error


def restore(
    backup: Backup,
    place: Place,
    *,
    incarnation: str,
    room_of: Callable[[str], Room],
    actor: str,
    tell: Progress = lambda *_: None,
) -> Reopened:
    """Into an empty house, which goes on under a new incarnation; or nothing at all."""
    rooms = _rooms(backup.manifest.about, place.url, room_of)
    copies.refuse_used(place.url)
    _refuse_other_shelf(backup.manifest, place)
    key = _key_to_write(backup, place)
    _put_evidence(backup, place, tell)
    if key is not None and place.key_file is not None:
        _put_key(place.key_file, key)

    def read(name: str) -> IO[bytes]:
        return backup.open(f"{DATABASE}{name}")

    copied = In(backup.manifest.about, backup.manifest.tables, rooms, read)
    return copies.copy_in(place.url, copied, lambda tx: _reopen(tx, backup, incarnation, actor))


def _rooms(about: About, url: str, room_of: Callable[[str], Room]) -> tuple[Room, ...]:
    """Whose migrations make the tables of the backup; refused where nobody's do."""
    dialect = "sqlite" if urlsplit(url).scheme == "sqlite" else "postgres"
    if about.dialect != dialect:
        raise BadInput(
            say(
                "this is the backup of a {theirs} database and cannot be restored into a"
                " {ours} one; nothing was changed",
                theirs=about.dialect,
                ours=dialect,
            )
        )
    rooms = tuple(room_of(name) for name in about.rooms)
    for room in rooms:
        newest = about.newest(room.name)
        known = {
            (each.number, each.name)
            for each in migrations(dialect, room)
            if each.number <= newest
        }
        had = {(each.number, each.name) for each in about.applied if each.room == room.name}
        if known != had:
            raise BadInput(
                say(
                    "the backup has migrations of {room} that this retoma does not know, up to"
                    " {newest}: restore it with the retoma that made it; nothing was changed",
                    room=room.name,
                    newest=newest,
                )
            )
    return rooms


def _refuse_other_shelf(manifest: Manifest, place: Place) -> None:
    """The database says of each piece where it lies, and that is what the backup knows."""
    lay = manifest.evidence["where"]
    if manifest.evidence["files"] and lay != place.evidence:
        raise BadInput(
            say(
                "the evidence of this backup lay in {lay}: set RETOMA_EVIDENCE to it;"
                " nothing was changed",
                lay=lay,
            )
        )


def _key_to_write(backup: Backup, place: Place) -> bytes | None:
    if place.key_file is None or not any(e.name == KEY for e in backup.manifest.members):
        return None
    key = backup.open(KEY).read(KEY_BYTES)
    there = _read_key(place.key_file)
    if there not in (None, key):
        raise IllegalMove(
            say(
                "{file} holds another secret key than the backup: move it away; nothing was"
                " changed",
                file=place.key_file,
            )
        )
    return key if there is None else None


def _put_evidence(backup: Backup, place: Place, tell: Progress) -> None:
    folder = _folder(place.evidence)
    if folder is None or not backup.manifest.evidence["files"]:
        return
    for name, source in backup.evidence():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.with_name(f"{path.name}.restored.half").open("wb") as half:
            shutil.copyfileobj(source, half, BLOCK)
            half.flush()
            os.fsync(half.fileno())
        Path(half.name).replace(path)
        tell(name, path.stat().st_size)
    _sync(folder)


def _put_key(file: Path, key: bytes) -> None:
    """Whole or not at all, readable by us alone, over nothing."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = file.with_name(f".{file.name}.restored")
    half.unlink(missing_ok=True)
    number = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(number, "wb") as written:
            written.write(key)
            written.flush()
            os.fsync(number)
        os.link(half, file)
    finally:
        half.unlink()
    _sync(file.parent)


def _reopen(tx: Transaction, backup: Backup, incarnation: str, actor: str) -> Reopened:
    about = backup.manifest.about
    [now] = tx.all(NOW, into=datetime)
    since = max(now - about.at, timedelta())
    told = {"taken_at": about.at.isoformat(), "sums": backup.manifest.sums}
    return store.reopen(
        tx,
        incarnation,
        skip=AT_LEAST + int(since.total_seconds()) * A_SECOND,
        actor=actor,
        subject=backup.file.name,
        details=json.dumps(told),
    )


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


NOW = adhoc("SELECT clock()")
