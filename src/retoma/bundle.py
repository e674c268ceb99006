"""An audit bundle: all that is known of a job or a batch, as lines that nobody can change unseen.

Each line carries the hash of the one before it; the last one, the signature, signs how many there are and
the hash of the last of them. Whoever has the key can tell whether a single byte is another.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from retoma.db import Database, Transaction
from retoma.engine import store
from retoma.engine.query import Subject, whole
from retoma.engine.rules.errors import BadInput, IllegalMove
from retoma.secret import redact
from retoma.vault import Signer
from retoma.words import say

FORMAT = 1
PURPOSE = "audit bundle v1"
NOTHING = "0" * 64  # what comes before the first line
LONGEST = 64 << 20  # bytes of a line: no value is a quarter of it


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle is about, and who signed it."""

    of: dict[str, int]
    at: datetime
    database: str
    lines: int
    key: str


async def write(
    database: Database, subject: Subject, file: Path, signer: Signer, zone: str
) -> Bundle:
    """Everything at one instant, into a file that appears when it is whole; over nothing."""
    with _appearing(file) as half:
        return await database.read(lambda tx: _written(tx, subject, half, signer, zone))


@contextmanager
def _appearing(file: Path) -> Iterator[IO[bytes]]:
    """What gets the name of `file` when the block ends well, and is gone where it does not."""
    _refuse_taken(file)
    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.") as half:
        yield half
        half.flush()
        os.fsync(half.fileno())
        try:
            os.link(half.name, file)
        except FileExistsError:
            _refuse_taken(file)


def _refuse_taken(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise IllegalMove(
            say("{file} is there already: a bundle is written over nothing", file=file)
        )
    if not file.parent.is_dir():
        raise BadInput(say("{path}: its folder does not exist", path=file))


def _written(
    tx: Transaction, subject: Subject, out: IO[bytes], signer: Signer, zone: str
) -> Bundle:
    out.seek(0)  # a question may be asked again
    out.truncate()
    chain = _Chain(out)
    of = {name: id_ for name, id_ in subject._asdict().items() if id_ is not None}
    at, database = store.now(tx), store.database_id(tx)
    head = {"format": FORMAT, "of": of, "at": at.isoformat(), "database": database}
    chain.add({"type": "bundle", **head, "retoma": version("retoma")})
    for piece in whole(tx, subject, zone):
        chain.add({"type": piece.type, "job": piece.job, "is": redact(piece.fields)})
    lines = chain.lines
    signed = signer.sign(_to_sign(lines, chain.last))
    chain.add({"type": "signature", "lines": lines, "key": signer.key, "hmac": signed})
    return Bundle(of, at, database, lines, signer.key)


def _to_sign(lines: int, last: str) -> bytes:
    return f"{lines}\n{last}".encode()


class _Chain:
    """Lines, each with the hash of the one before it."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.last = NOTHING
        self.lines = 0

    def add(self, told: dict[str, Any]) -> None:
        self.lines += 1
        line = _line({"n": self.lines, "before": self.last, **told})
        self._out.write(line)
        self.last = sha256(line).hexdigest()


def _line(told: dict[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


# — is it as it was signed? —


def verify(file: Path, signer: Signer) -> Bundle:
    """What it is about; BadInput where anything in it is not what was signed."""
    try:
        with file.open("rb") as source:
            return _verified(file, source, signer)
    except OSError as error:
        raise BadInput(say("{file}: {why}", file=file, why=error.strerror)) from None


def _verified(file: Path, source: IO[bytes], signer: Signer) -> Bundle:
    head: dict[str, Any] | None = None
    last = NOTHING
    for n, raw in enumerate(_lines(source), 1):
        told = _parsed(raw)
        if told.get("n") != n or told.get("before") != last:
            # This line does not follow: the one before it is another, or this one is.
            raise _changed(file, max(n - 1, 1))
        if n == 1:
            head = _head(file, told)
        if told.get("type") == "signature":
            return _judged(file, source, signer, head, told, last)
        last = sha256(raw).hexdigest()
    raise BadInput(say("{file} has no signature: it was cut off, or is no bundle", file=file))


def _judged(
    file: Path,
    source: IO[bytes],
    signer: Signer,
    head: dict[str, Any] | None,
    signature: dict[str, Any],
    last: str,
) -> Bundle:
    lines, key = signature.get("lines"), str(signature.get("key"))
    if head is None or lines != signature["n"] - 1 or source.read(1):
        raise _changed(file, signature["n"])
    if not signer.is_signed(key, _to_sign(lines, last), str(signature.get("hmac"))):
        raise _changed(file, signature["n"])
    at = datetime.fromisoformat(head["at"])
    return Bundle(dict(head["of"]), at, head["database"], lines, key)


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    while raw := source.readline(LONGEST):
        yield raw


def _parsed(raw: bytes) -> dict[str, Any]:
    """As it was written, to the byte; anything else is no line of ours."""
    try:
        told = json.loads(raw)
        if isinstance(told, dict) and _line(told) == raw:
            return told
    except (ValueError, RecursionError):
        pass
    return {}


def _head(file: Path, told: dict[str, Any]) -> dict[str, Any]:
    if told.get("type") != "bundle":
        raise BadInput(say("{file} is no audit bundle", file=file))
    if told.get("format") != FORMAT:
        raise BadInput(
            say(
                "{file} is a bundle of format {format}, this retoma reads {known}",
                file=file,
                format=told.get("format"),
                known=FORMAT,
            )
        )
    return told


def _changed(file: Path, line: int) -> BadInput:
    return BadInput(
        say("{file} is not what was signed: line {line} is another", file=file, line=line)
    )
