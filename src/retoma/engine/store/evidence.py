"""What a job shows: bytes kept once by their digest, in the database or on a shelf, and capped."""

import hashlib
import json
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from retoma.db import Transaction, moment
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Held
from retoma.engine.store.rows import append_event
from retoma.engine.store.verb import SQL

PIECE = 32 * 1024 * 1024  # bytes: twice what a value may have, so that one too large fits
JOB = 128 * 1024 * 1024  # bytes of all that one job shows
GRACE = 24 * 3600.0  # seconds that bytes nobody shows yet are left alone
LEAVING = (
    3600.0  # seconds until a place that was left is emptied: somebody may still be putting
)
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something to look at later: a page, a picture, a stack."""

    name: str
    media: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Packed:
    """As much of it as may be kept, as it is kept."""

    name: str
    media: str
    sha256: str
    codec: str
    size: int  # before it was packed
    data: bytes
    cut_from: int | None = None  # how long it was, where that was more than may be kept

    @property
    def left_out(self) -> bool:
        """Nothing of it may be kept."""
        return self.cut_from is not None and not self.size


class Intent(NamedTuple):
    """Where bytes are to be put, whether they lie there already, and what time it is."""

    place: str | None  # None: they are in the database
    there: bool
    at: datetime


class Kept(NamedTuple):
    """Where bytes lie, or the bytes themselves."""

    codec: str
    size: int
    data: bytes | None
    place: str | None
    at: datetime


def pack(evidence: Evidence, room: int = PIECE) -> Packed:
    """Cut, digested and squeezed, where squeezing makes it smaller."""
    whole = len(evidence.content)
    content = evidence.content[: min(room, PIECE)]
    squeezed = zlib.compress(content)
    smaller = len(squeezed) < len(content)
    return Packed(
        name=evidence.name,
        media=evidence.media,
        sha256=hashlib.sha256(content).hexdigest(),
        codec="zlib" if smaller else "plain",
        size=len(content),
        data=squeezed if smaller else content,
        cut_from=None if len(content) == whole else whole,
    )


def unpack(kept: Kept, data: bytes) -> bytes:
    """What was packed, or whatever this is instead: never more of it than was kept."""
    if kept.codec != "zlib":
        return data
    try:
        return zlib.decompressobj().decompress(data, kept.size + 1)
    except zlib.error:
        return data


def attach(tx: Transaction, boot: str, held: Held, packed: Packed) -> bool:
    """Keep it in the database, with its job; whether this runner may still write on that."""
    seq = _held(tx, boot, held)
    if seq is None:
        return False
    _check_room(tx, held, packed)
    if not packed.left_out:
        tx.run(
            SQL.keep_evidence,
            sha256=packed.sha256,
            codec=packed.codec,
            size=packed.size,
            bytes=packed.data,
        )
        _show(tx, held, packed)
    _tell(tx, boot, held, seq, packed)
    return True


def intend(tx: Transaction, boot: str, held: Held, packed: Packed, place: str) -> Intent | None:
    """Before bytes are put on a shelf; None where this runner no longer holds the job."""
    return tx.one(
        SQL.intend_evidence,
        into=Intent,
        boot=boot,
        job=held.job,
        epoch=held.epoch,
        sha256=packed.sha256,
        codec=packed.codec,
        size=packed.size,
        place=place,
    )


def attach_stored(
    tx: Transaction, boot: str, held: Held, packed: Packed, place: str | None
) -> bool:
    """As `attach`, after they were put on their shelf."""
    seq = _held(tx, boot, held)
    if seq is None:
        return False
    _check_room(tx, held, packed)
    if tx.one(SQL.store_evidence, sha256=packed.sha256, place=place) is None:
        raise IntentGone
    _show(tx, held, packed)
    _tell(tx, boot, held, seq, packed)
    return True


class NoRoom(Exception):
    """The job shows so much already that only `room` bytes more fit; nothing was changed."""

    def __init__(self, room: int) -> None:
        super().__init__(room)
        self.room = room


class IntentGone(Exception):
    """Retention was quicker; nothing was changed."""


def get_evidence(tx: Transaction, sha256: str) -> Kept | None:
    row = tx.one(SQL.get_evidence, sha256=sha256)
    if row is None:
        return None
    codec, size, data, place, stored, now = row
    return Kept(
        codec,
        size,
        None if data is None else bytes(data),
        place if stored else None,
        moment(now),
    )


def drop_unreferenced(tx: Transaction, after: str) -> tuple[int, str | None]:
    """Of the next page, delete what no job shows: how many, and where the page ended."""
    [(last,)] = tx.all(SQL.page_of_evidence, after=after, page=PAGE)
    if last is None:
        return 0, None
    return len(tx.all(SQL.drop_evidence, after=after, last=last, grace=-GRACE)), last


def places_left(tx: Transaction, base: str) -> list[tuple[str, datetime]]:
    rows = tx.all(SQL.places_left, base=base, grace=-LEAVING, bite=PAGE)
    return [(place, moment(now)) for place, now in rows]


def place_emptied(tx: Transaction, place: str) -> None:
    tx.run(SQL.place_emptied, place=place)


def _held(tx: Transaction, boot: str, held: Held) -> int | None:
    return tx.one(SQL.hold_for_evidence, into=int, boot=boot, job=held.job, epoch=held.epoch)


def _check_room(tx: Transaction, held: Held, packed: Packed) -> None:
    [(shown,)] = tx.all(SQL.size_of_evidence, job=held.job, epoch=held.epoch, name=packed.name)
    room = max(JOB - int(shown), 0)
    if packed.size > room:
        raise NoRoom(room)


def _show(tx: Transaction, held: Held, packed: Packed) -> None:
    tx.run(
        SQL.show_evidence,
        job=held.job,
        epoch=held.epoch,
        name=packed.name,
        media=packed.media,
        sha256=packed.sha256,
        cut_from=packed.cut_from,
    )


def _tell(tx: Transaction, boot: str, held: Held, seq: int, packed: Packed) -> None:
    told: dict[str, object] = {"name": packed.name}
    if not packed.left_out:
        told["sha256"] = packed.sha256
    if packed.cut_from is not None:
        told["note"] = _note(packed)
    append_event(
        tx, held.job, seq, EventType.EVIDENCE, boot, json.dumps(told), epoch=held.epoch
    )


def _note(packed: Packed) -> str:
    if packed.left_out:
        return (
            f"not kept: its {packed.cut_from:,} bytes exceed the {JOB:,} that one job may show"
        )
    return (
        f"cut to {packed.size:,} of {packed.cut_from:,} bytes: one piece has at most {PIECE:,},"
        f" all of a job {JOB:,}"
    )
