"""Back up an installation into one file and restore it: its database, evidence and secret key.

A backup is a plain tar. `SHA256SUMS` has the hash of every member before it; `manifest.json` comes last
and has the hash of `SHA256SUMS`, so a backup without it is incomplete. A restore checks the whole file
before it writes anything, and fills the database last, in one transaction.
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

from retoma.blob_stores import PLACE
from retoma.db import Transaction, adhoc, copies
from retoma.db.copies import About, Applied, In, Table
from retoma.db.migrations import Room, migrations
from retoma.engine import store
from retoma.engine.rules.errors import BadInput, IllegalMove
from retoma.engine.store import Reopened
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
# Ids that a restore skips per second since the backup, for jobs submitted after it: more than a database can write.
A_SECOND = 100_000
AT_LEAST = 1_000_000

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Installation:
    """The database, evidence and key file of an installation."""

    url: str
    evidence: str  # the value of RETOMA_EVIDENCE
    key_file: Path | None = None  # None: the key is in the environment, or is left out


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the database, or the key."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of a backup."""

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
        document = {"format": self.format, "retoma": self.retoma, **about} | {
            "at": self.about.at.isoformat(),
            "tables": [asdict(table) for table in self.tables],
            "members": [asdict(member) for member in self.members],
            "evidence": dict(self.evidence),
            "sums": self.sums,
        }
        return json.dumps(document, ensure_ascii=False, indent=1)

    @property
    def document(self) -> dict[str, Any]:
        """The summary that the CLI shows."""
        return {
            "format": self.format,
            "retoma": self.retoma,
            "dialect": self.about.dialect,
            "database_id": self.about.database,
            "at": self.about.at.isoformat(),
            "migrations": {room: self.about.newest(room) for room in self.about.rooms},
            "rows": {table.name: table.rows for table in self.tables},
            "evidence": dict(self.evidence),
            "secret_key": any(member.name == KEY for member in self.members),
        }


def back_up(
    installation: Installation, file: Path, report: Progress = lambda *_: None
) -> Manifest:
    """Write a backup. `file` must not exist; it appears once the backup is complete."""
    _check_free(file)
    with _half(file) as (half, path, beside):
        written = _write(installation, half, beside, report)
        half.flush()
        os.fsync(half.fileno())
        try:
            os.link(path, file)
        except FileExistsError:
            _check_free(file)
    _sync(file.parent)
    return written


def _check_free(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise IllegalMove(
            say("{file} exists already: choose another name for the backup", file=file)
        )
    if not file.parent.is_dir():
        raise BadInput(say("{path}: its folder does not exist", path=file))


@contextmanager
def _half(file: Path) -> Iterator[tuple[IO[bytes], Path, Path]]:
    """Open a temporary file and folder for the backup; both are removed at the end."""
    path, beside = (file.with_name(f"{file.name}.{end}") for end in ("part", "copying"))
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "r+b") as half:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IllegalMove(say("another process is writing {file}", file=path)) from None
        os.fchmod(number, 0o600)
        half.truncate()  # left by a process that was killed
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        try:
            yield half, path, beside
        finally:
            shutil.rmtree(beside, ignore_errors=True)
            path.unlink(missing_ok=True)


def _write(
    installation: Installation, half: IO[bytes], beside: Path, report: Progress
) -> Manifest:
    key = _read_key(installation.key_file)
    with (beside / SUMS).open("w+b") as sums, copies.copy_out(installation.url, beside) as out:
        packed = _Pack(half, sums, out.about.at, report)
        tables: list[Table] = []
        members: list[Member] = []
        for piece in out.pieces():
            members.append(packed.add_file(f"{DATABASE}{piece.path.name}", piece.path))
            tables += piece.tables
            piece.path.unlink()
        # After the database, so that all evidence it refers to is stored by now.
        evidence = _add_evidence(packed, installation.evidence)
        if key is not None:
            if key != _read_key(installation.key_file):
                raise IllegalMove(
                    say("the secret key changed during the backup: run the backup again")
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
                    with suppress(FileNotFoundError):  # retention removed it in the meantime
                        size += packed.add_file(f"{EVIDENCE}{name}", path).size
                        files += 1
    inside = folder is not None or where == "database"
    return {"where": where, "included": inside, "files": files, "bytes": size}


def _folder(where: str) -> Path | None:
    parts = urlsplit(where)
    return Path(unquote(parts.path)) if parts.scheme == "folder" else None


class _Pack:
    """Writes the tar and the hashes of its members."""

    def __init__(
        self, half: IO[bytes], sums: IO[bytes], at: datetime, report: Progress
    ) -> None:
        self._tar: Any = tarfile.open(fileobj=half, mode="w")  # noqa: SIM115 — closed by close()
        self._sums = sums
        self._at = at.timestamp()
        self._report = report

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
        hashed = _Hashed(file, lambda n: self._report(name, n))
        self._tar.addfile(info, hashed)
        # tarfile keeps every member in memory; nothing here needs them.
        self._tar.members = []
        if name not in (SUMS, MANIFEST):
            self._sums.write(f"{hashed.sha256}  {name}\n".encode())
        return Member(name, size, hashed.sha256)


class _Hashed:
    """A file that computes its hash while it is read."""

    def __init__(self, file: Any, report: Callable[[int], None]) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._report = report

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._file.read(size)
        self._sum.update(block)
        self._report(len(block))
        return block

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()


@dataclass(slots=True)
class Backup:
    """A backup file that was read completely and verified."""

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
def opened(file: Path, report: Progress = lambda *_: None) -> Iterator[Backup]:
    """Open a backup and verify every byte of it."""
    try:
        raw = file.open("rb")
    except OSError as error:
        raise BadInput(say("{file}: {why}", file=file, why=error.strerror)) from None
    with raw:
        try:
            with tarfile.open(fileobj=raw, mode="r:") as tar:
                yield _checked(file, tar, report)
        except (tarfile.TarError, EOFError) as error:
            raise _damaged(file, str(error)) from error


def _checked(file: Path, tar: tarfile.TarFile, report: Progress) -> Backup:
    seen: dict[str, tarfile.TarInfo] = {}
    got: dict[str, str] = {}
    sums = hashlib.sha256()
    for member in _members(tar):
        _check_member(file, member, seen)
        hashed = _Hashed(_bytes_of(tar, member), lambda n: report(file.name, n))
        while hashed.read(BLOCK):
            pass
        if not member.name.startswith(EVIDENCE):
            seen[member.name], got[member.name] = member, hashed.sha256
        if member.name not in (SUMS, MANIFEST):
            sums.update(f"{hashed.sha256}  {member.name}\n".encode())
    if MANIFEST not in seen or SUMS not in seen:
        raise _damaged(file, "it is incomplete")
    made = Backup(file, _manifest(file, tar, seen[MANIFEST]), tar, seen)
    for listed in made.manifest.members:
        if got.get(listed.name) != listed.sha256:
            raise _damaged(file, f"the hash of {listed.name} is wrong")
    if not got[SUMS] == made.manifest.sums == sums.hexdigest():
        raise _damaged(file, "the hash of some files is wrong")
    return made


def _members(tar: Any) -> Iterator[tarfile.TarInfo]:
    """Yield all members from the start, without keeping them in memory."""
    tar.fileobj.seek(0)
    tar.offset, tar.firstmember = 0, None
    while (member := tar.next()) is not None:
        tar.members = []
        yield member


def _bytes_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name} has no bytes")
    return content


def _check_member(
    file: Path, member: tarfile.TarInfo, seen: Mapping[str, tarfile.TarInfo]
) -> None:
    if not (member.isreg() and MEMBER.fullmatch(member.name)) or member.name in seen:
        raise BadInput(
            say(
                "{file} is not a retoma backup: it has a member {name!r}; nothing was changed",
                file=file,
                name=member.name[:100],
            )
        )


def _damaged(file: Path, why: str) -> BadInput:
    return BadInput(say("{file} is damaged ({why}); nothing was changed", file=file, why=why))


def _manifest(file: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Manifest:
    try:
        document = json.loads(_bytes_of(tar, member).read(LONGEST))
        if document["format"] > FORMAT:
            raise BadInput(
                say(
                    "{file} is a backup of format {format}, this retoma reads up to {known}:"
                    " restore it with retoma {version} or a newer one; nothing was changed",
                    file=file,
                    format=document["format"],
                    known=FORMAT,
                    version=document.get("retoma", "?"),
                )
            )
        about = About(
            document["dialect"],
            document["database"],
            datetime.fromisoformat(document["at"]),
            tuple(Applied(**applied) for applied in document["applied"]),
            document["ids"],
        )
        return Manifest(
            format=document["format"],
            retoma=document["retoma"],
            about=about,
            tables=tuple(
                Table(table["name"], table["rows"], tuple(table["columns"]))
                for table in document["tables"]
            ),
            members=tuple(Member(**member) for member in document["members"]),
            evidence=document["evidence"],
            sums=document["sums"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(file, f"its manifest is invalid: {type(error).__name__}") from error


def restore(
    backup: Backup,
    installation: Installation,
    *,
    incarnation: str,
    migrations_of: Callable[[str], Room],
    actor: str,
    report: Progress = lambda *_: None,
) -> Reopened:
    """Restore into an empty installation, which continues under a new incarnation. All or nothing."""
    rooms = _rooms(backup.manifest.about, installation.url, migrations_of)
    copies.refuse_used(installation.url)
    _check_evidence_setting(backup.manifest, installation)
    key = _key_to_write(backup, installation)
    _put_evidence(backup, installation, report)
    if key is not None and installation.key_file is not None:
        _put_key(installation.key_file, key)

    def read(name: str) -> IO[bytes]:
        return backup.open(f"{DATABASE}{name}")

    copied = In(backup.manifest.about, backup.manifest.tables, rooms, read)
    return copies.copy_in(
        installation.url, copied, lambda tx: _reopen(tx, backup, incarnation, actor)
    )


def _rooms(about: About, url: str, migrations_of: Callable[[str], Room]) -> tuple[Room, ...]:
    """Return the migrations that make the backup's tables; BadInput if this version lacks any."""
    dialect = "sqlite" if urlsplit(url).scheme == "sqlite" else "postgres"
    if about.dialect != dialect:
        raise BadInput(
            say(
                "a backup of a {theirs} database cannot be restored into a"
                " {ours} one; nothing was changed",
                theirs=about.dialect,
                ours=dialect,
            )
        )
    rooms = tuple(migrations_of(name) for name in about.rooms)
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


def _check_evidence_setting(manifest: Manifest, installation: Installation) -> None:
    """Raise BadInput if RETOMA_EVIDENCE differs: the database stores where each piece of evidence is."""
    lay = manifest.evidence["where"]
    if manifest.evidence["files"] and lay != installation.evidence:
        raise BadInput(
            say(
                "the evidence of this backup was stored in {lay}: set RETOMA_EVIDENCE to it;"
                " nothing was changed",
                lay=lay,
            )
        )


def _key_to_write(backup: Backup, installation: Installation) -> bytes | None:
    if installation.key_file is None or not any(e.name == KEY for e in backup.manifest.members):
        return None
    key = backup.open(KEY).read(KEY_BYTES)
    present = _read_key(installation.key_file)
    if present not in (None, key):
        raise IllegalMove(
            say(
                "{file} holds a different secret key than the backup: move it away; nothing was"
                " changed",
                file=installation.key_file,
            )
        )
    return key if present is None else None


def _put_evidence(backup: Backup, installation: Installation, report: Progress) -> None:
    folder = _folder(installation.evidence)
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
        report(name, path.stat().st_size)
    _sync(folder)


def _put_key(file: Path, key: bytes) -> None:
    """Write the key file atomically, readable only by its owner. It must not exist."""
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
    details = {"taken_at": about.at.isoformat(), "sums": backup.manifest.sums}
    return store.reopen(
        tx,
        incarnation,
        skip=AT_LEAST + int(since.total_seconds()) * A_SECOND,
        actor=actor,
        subject=backup.file.name,
        details=json.dumps(details),
    )


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


NOW = adhoc("SELECT clock()")
