"""The target: a table of somebody else's, and two small ones of ours beside it.

A group of rows and the mark that says how far the job is are written in one transaction, so that a
group happened once, or not at all, wherever a process dies. The mark belongs to the claim that took
it over last: whoever still writes under an older epoch changes nothing.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar

from retoma.db import (
    Away,
    BadRow,
    Busy,
    Database,
    DatabaseError,
    Full,
    ReplyLost,
    Statement,
    Transaction,
    crashpoint,
    from_driver,
)
from retoma.engine.rules.errors import LeaseLost, Permanent, Transient
from retoma.programs.writer.checks import Group, Row, shown
from retoma.programs.writer.model import KEPT, FailedItem, Profile, Report
from retoma.programs.writer.statements import Sql
from retoma.secret import redact_text
from retoma.words import say

T = TypeVar("T")

LONGEST: Final = 500  # characters of what a database says of a row
# What a server says of a row though its class is not that of a bad one: two rows of one statement are
# the same to it, a row is too large for an index, a trigger will not have it.
ABOUT_A_ROW: Final = ("21000", "54000", "P0001")

Chosen = tuple[tuple[str, ...], Row]  # a row, and the columns it names


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a job is, as its target says."""

    processed: int = 0
    stored: int = 0
    failed: int = 0
    digest: str = ""  # of everything up to there, as it came
    total: int | None = None


class _Undo(Exception):
    """It could be written: that was all we wanted to know."""


class Target:
    """Where the rows of one profile go."""

    def __init__(self, database: Database, profile: Profile) -> None:
        self._database = database
        self._profile = profile
        self._sql = Sql(database.dialect, profile)
        self._upserts: dict[tuple[str, ...], Statement] = {}

    async def make_room(self) -> None:
        """The two tables of ours, if they are not there yet."""

        def make(tx: Transaction) -> None:
            for each in self._sql.tables():
                tx.for_caller(each)

        await self._write(make, "writer_room")

    async def begin(self, job: str, epoch: int) -> Mark:
        """Take the job's mark over; LeaseLost where a later claim has done so."""

        def take(tx: Transaction) -> Mark:
            rows, _ = tx.for_caller(self._sql.take_mark, job=job, epoch=epoch)
            tx.for_caller(self._sql.forget_failures)
            tx.for_caller(self._sql.forget_marks)
            if not rows:
                raise LeaseLost(job)
            return _mark(rows[0])

        while True:
            try:
                return await self._write(take, "writer_begin")
            except ReplyLost:
                continue  # asked again it takes the same mark

    async def read(self, job: str) -> tuple[Mark, list[FailedItem]] | None:
        """How far a job is, at one instant; None: it has not begun."""

        def look(tx: Transaction) -> tuple[Mark, list[FailedItem]] | None:
            rows, _ = tx.for_caller(self._sql.read_mark, job=job)
            if not rows:
                return None
            failures, _ = tx.for_caller(self._sql.read_failures, job=job)
            return _mark(rows[0]), [FailedItem(i, json.loads(d), e) for i, d, e in failures]

        try:
            return await self._database.read(look)
        except Exception as error:
            raise failure(error) from error

    async def answers(self) -> None:
        """Return if it does, now."""
        await self._database.read(lambda tx: tx.for_caller(self._sql.nothing), patience=0)

    async def store(
        self, job: str, epoch: int, was: Mark, group: Group, digest: str, *, last: bool
    ) -> Mark:
        """A group and its mark; rows the database will not have are found and set apart.

        `last`: the end of the source was seen, what was read is all there is.
        """
        rows, failed, times = group.rows, list(group.failed), 0
        while True:
            processed = was.processed + group.count
            reached = Mark(
                processed=processed,
                stored=was.stored + len(rows),
                failed=was.failed + len(failed),
                digest=digest,
                total=processed if last else None,
            )
            try:
                await self._advance(job, epoch, was, reached, rows, failed)
            except BadRow:
                # Each half by itself; what is good alone and still cannot be written together is
                # looked at one upon the other.
                rows, refused = await self._sifted(rows, together=times > 0)
                failed += refused
                times += 1
            else:
                return reached

    async def start_over(self, job: str, epoch: int, was: Mark) -> Mark:
        """The source is not what it was: its items are counted anew, from the first."""
        await self._advance(job, epoch, was, Mark(), (), (), anew=True)
        return Mark()

    async def _advance(
        self,
        job: str,
        epoch: int,
        was: Mark,
        to: Mark,
        rows: Sequence[Chosen],
        failed: Iterable[FailedItem],
        *,
        anew: bool = False,
    ) -> None:
        kept = sorted(failed, key=lambda each: each.index)[: max(KEPT - was.failed, 0)]

        def advance(tx: Transaction) -> None:
            _, moved = tx.for_caller(
                self._sql.move_mark,
                job=job,
                epoch=epoch,
                was=was.processed,
                processed=to.processed,
                stored=to.stored,
                failed=to.failed,
                digest=to.digest,
                total=to.total,
            )
            if moved != 1:
                raise LeaseLost(job)
            if anew:
                tx.for_caller(self._sql.drop_failures, job=job)
            self._upsert(tx, rows)
            if kept:
                tx.for_caller(self._sql.keep_failures, job=job, items=_document(kept))

        while True:
            try:
                await self._write(advance, "writer_group")
            except ReplyLost:
                if await self._stands_at(job, epoch, to):
                    break
            else:
                break
        if crashpoint.live:
            crashpoint("writer.after_group")

    async def _stands_at(self, job: str, epoch: int, to: Mark) -> bool:
        """Whether the commit whose answer was lost has happened."""

        def look(tx: Transaction) -> bool:
            rows, _ = tx.for_caller(self._sql.read_mark, job=job)
            if not rows or rows[0][-1] != epoch:
                raise LeaseLost(job)
            return _mark(rows[0]) == to

        return await self._write(look, "writer_look")

    # — rows —

    async def _sifted(
        self, rows: Sequence[Chosen], *, together: bool
    ) -> tuple[list[Chosen], list[FailedItem]]:
        """Those that can be written, found by halves; and what is wrong with the others."""
        good: list[Chosen] = []
        bad: list[FailedItem] = []

        async def add(some: Sequence[Chosen]) -> None:
            why = await self._refusal([*good, *some] if together else some)
            if why is None:
                good.extend(some)
            elif len(some) == 1:
                [(_, (index, item, _))] = some
                bad.append(FailedItem(index, shown(item, self._profile.conflict_key), why))
            else:
                await add(some[: len(some) // 2])
                await add(some[len(some) // 2 :])

        await add(rows)
        return good, bad

    async def _refusal(self, rows: Sequence[Chosen]) -> str | None:
        """Why these cannot be written together; tried, and undone."""

        def attempt(tx: Transaction) -> None:
            self._upsert(tx, rows)
            raise _Undo

        try:
            await self._write(attempt, "writer_try")
        except _Undo:
            return None
        except BadRow as error:
            return _said(error)
        raise AssertionError("it is always undone")

    def _upsert(self, tx: Transaction, rows: Sequence[Chosen]) -> None:
        """Those that name the same columns stand together: a statement for each such stretch."""
        for columns, some in groupby(rows, itemgetter(0)):
            statement = self._upserts.get(columns)
            if statement is None:
                statement = self._upserts[columns] = self._sql.upsert(columns)
            texts = self._texts([row for _, row in some])
            tx.for_caller(statement, rows=texts, **self._sql.paths(columns))

    def _texts(self, rows: Sequence[Row]) -> str:
        """One array. PostgreSQL gets items as they came, every digit of a number with them; to
        SQLite a field that is named twice would be the first of the two, and to us it is the last."""
        if self._database.dialect == "sqlite":
            return _document([item for _, item, _ in rows])
        texts = [_document(item) if text is None else text for _, item, text in rows]
        return f"[{','.join(texts)}]"

    async def _write(self, fn: Callable[[Transaction], T], verb: str) -> T:
        try:
            return await self._database.write(fn, verb=verb)
        except (ReplyLost, LeaseLost, BadRow, _Undo):
            raise
        except Exception as error:
            if getattr(error, "sqlstate", None) in ABOUT_A_ROW:
                raise BadRow(_said(error)) from error
            raise failure(error) from error


def report_of(mark: Mark, items: Sequence[FailedItem]) -> Report:
    return Report(
        total=mark.total,
        processed=mark.processed,
        stored=mark.stored,
        failed=mark.failed,
        items=list(items),
    )


def failure(error: Exception) -> Exception:
    """What went wrong at the target, in the words of the engine; anything else is itself."""
    match error:
        case Away() | Busy() | Full():
            return Transient(say("the target: {why}", why=_said(error)), code="target_away")
        case DatabaseError():
            return Permanent(say("the target: {why}", why=_said(error)), code="target_schema")
        case _ if from_driver(error):
            return Permanent(say("the target: {why}", why=_said(error)), code="target_schema")
        case _:
            return error


def _said(error: BaseException) -> str:
    """One line of what the driver said: no path of a file, no values of a row."""
    first = str(error.__cause__ or error).strip().split("\n")[0]
    return redact_text(first)[:LONGEST]


def _mark(row: Sequence[Any]) -> Mark:
    processed, stored, failed, digest, total, _ = row
    return Mark(processed=processed, stored=stored, failed=failed, digest=digest, total=total)


def _document(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    return {"index": value.index, "data": value.data, "error": value.error}
