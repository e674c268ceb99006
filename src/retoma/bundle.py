"""Write and verify audit bundles: the full record of a job or a batch, as signed lines.

Each line carries the hash of the line before it. The last line signs the number of lines and the hash of the
line before it, so that anyone with the key can detect a change of a single byte.
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
NOTHING = "0" * 64  # the hash before the first line
LONGEST = 64 << 20  # bytes of a line: values are far smaller


@dataclass(frozen=True, slots=True)
class Bundle:
    """The subject of a bundle and the key that signed it."""

    of: dict[str, int]
    at: datetime
    database: str
    lines: int
    key: str


async def write(
    database: Database, subject: Subject, file: Path, signer: Signer, zone: str
) -> Bundle:
    """Write a bundle from one transaction. `file` must not exist; it appears once it is complete."""
    with _new_file(file) as half:
        return await database.read(lambda tx: _write(tx, subject, half, signer, zone))


@contextmanager
def _new_file(file: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes `file` if the block succeeds, and is removed otherwise."""
    _check_free(file)
    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.") as half:
        yield half
        half.flush()
        os.fsync(half.fileno())
        try:
            os.link(half.name, file)
        except FileExistsError:
            _check_free(file)


def _check_free(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise IllegalMove(
            say("{file} exists already: choose another name for the bundle", file=file)
        )
    if not file.parent.is_dir():
        raise BadInput(say("{path}: its folder does not exist", path=file))


def _write(
    tx: Transaction, subject: Subject, out: IO[bytes], signer: Signer, zone: str
) -> Bundle:
    out.seek(0)  # the transaction may run again
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
    """Writes lines, each with the hash of the line before it."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.last = NOTHING
        self.lines = 0

    def add(self, fields: dict[str, Any]) -> None:
        self.lines += 1
        line = _line({"n": self.lines, "before": self.last, **fields})
        self._out.write(line)
        self.last = sha256(line).hexdigest()


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def verify(file: Path, signer: Signer) -> Bundle:
    """Verify a bundle and return its subject; BadInput if anything was changed after signing."""
    try:
        with file.open("rb") as source:
            return _verify(file, source, signer)
    except OSError as error:
        raise BadInput(say("{file}: {why}", file=file, why=error.strerror)) from None


def _verify(file: Path, source: IO[bytes], signer: Signer) -> Bundle:
    head: dict[str, Any] | None = None
    last = NOTHING
    for n, raw in enumerate(_lines(source), 1):
        line = _parse(raw)
        if line.get("n") != n or line.get("before") != last:
            # Either this line or the one before it was changed.
            raise _changed(file, max(n - 1, 1))
        if n == 1:
            head = _check_head(file, line)
        if line.get("type") == "signature":
            return _check_signature(file, source, signer, head, line, last)
        last = sha256(raw).hexdigest()
    raise BadInput(
        say("{file} has no signature: it is truncated or not an audit bundle", file=file)
    )


def _check_signature(
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


def _parse(raw: bytes) -> dict[str, Any]:
    """Parse a line; empty if it is not byte for byte what `_line` writes."""
    try:
        fields = json.loads(raw)
        if isinstance(fields, dict) and _line(fields) == raw:
            return fields
    except (ValueError, RecursionError):
        pass
    return {}


def _check_head(file: Path, head: dict[str, Any]) -> dict[str, Any]:
    if head.get("type") != "bundle":
        raise BadInput(say("{file} is not an audit bundle", file=file))
    if head.get("format") != FORMAT:
        raise BadInput(
            say(
                "{file} is a bundle of format {format}, this retoma reads {known}",
                file=file,
                format=head.get("format"),
                known=FORMAT,
            )
        )
    return head


def _changed(file: Path, line: int) -> BadInput:
    return BadInput(
        say("{file} was changed after signing: line {line} is different", file=file, line=line)
    )
