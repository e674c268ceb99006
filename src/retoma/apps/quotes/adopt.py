"""An existing `quote_requests` of the document's shape, taken over: counted first, done once.

Only read there. What has ended becomes history, which has no job. What waits or was at work becomes a quote
with a job that keeps what was paid for. Two passes, each of which may be interrupted and run again: first the
rows, then the jobs of those that have none yet.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from urllib.parse import urlsplit

from retoma import db
from retoma.apps.quotes import store
from retoma.apps.quotes.before import PAID, Before, Unreadable, read_before
from retoma.apps.quotes.model import KIND, ProcessingCheckpoint, QuoteKind, QuoteStatus
from retoma.apps.quotes.store import SQL
from retoma.db import adhoc, quoted
from retoma.engine import store as engine
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.toolkit.foreign import as_kept, instant, named
from retoma.words import say

PIECE: Final = 500  # rows in one transaction
LOTE: Final = 10_000  # quotes of one lote
NOTES: Final = 50  # rows that are named; the rest are counted
LONGEST: Final = 10_000  # characters of a description
QUIET: Final = timedelta(minutes=10)  # whose heartbeat is younger is at work there
LARGEST: Final = 2**62  # a number beyond it is not kept: new ones are given above it
# What a column may be called there; the first that is found.
DESCRIBED: Final = ("descricao", "description", "input_text", "texto", "produto")
NAMES: Final[Mapping[str, Sequence[str]]] = {
    "kind": ("tipo", "kind", "quote_type"),
    "code": ("codigo", "code"),
    "batch_request_id": ("batch_request_id", "batch_id", "lote_id", "lote"),
}
KINDS: Final = {
    "product": QuoteKind.PRODUCT,
    "produto": QuoteKind.PRODUCT,
    "vehicle": QuoteKind.VEHICLE,
    "veiculo": QuoteKind.VEHICLE,
    "veículo": QuoteKind.VEHICLE,
}
DOCUMENTS: Final = ("resume_data", *PAID, "result")
TIMES: Final = ("last_heartbeat", "started_at", "completed_at", "created_at")
OPEN: Final = (QuoteStatus.PENDING, QuoteStatus.PROCESSING)


@dataclass(slots=True)
class Adoption:
    """What was taken over, or would be."""

    source: str
    applied: bool
    found: int = 0
    history: int = 0  # DONE, ERROR, CANCELED: as they were, without a job
    open: int = 0  # PENDING, PROCESSING: with a job
    already: int = 0  # taken over before
    left: int = 0  # cannot be taken over; the notes say why
    at_work: int = 0  # somebody is at work on them there: taken over when that has ended
    renumbered: int = 0  # their number is another quote's here
    analyses: int = 0  # paid for there, and not again
    searches: int = 0
    tested: int = 0  # pages, likewise
    lotes: int = 0
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if len(self.notes) < NOTES:
            self.notes.append(text)


async def adopt(
    retoma: Retoma,
    url: str,
    *,
    actor: str,
    apply: bool = False,
    schema: str = "public",
    table: str = "quote_requests",
    described: str | None = None,
    pay_again: bool = False,
    source: str | None = None,
) -> Adoption:
    """Counts by default; with `apply` it is done.

    `described`: the column that says what is to be quoted. `pay_again`: what was paid for and cannot be read is
    paid for again; else such a quote is left.
    """
    _not_our_own(retoma.url, url, schema, table)
    there = db.open(url, patience=0)
    name = source or f"{named(url)} {schema}.{table}"
    try:
        table_ = await there.read(partial(_table, schema=schema, name=table, said=described))
        return await _Adopter(retoma, there, table_, name, actor, apply, pay_again).run()
    finally:
        there.close()


def _not_our_own(ours: str, theirs: str, schema: str, table: str) -> None:
    place = urlsplit(theirs).scheme == "sqlite" or schema == "retoma"
    if named(ours) == named(theirs) and place and table in ("quote_requests", "quotes"):
        raise BadInput(say("{table} is our own: there is nothing to take over", table=table))


# — there —


@dataclass(frozen=True, slots=True)
class _Table:
    """Where the rows are, and which of its columns say what."""

    place: str
    columns: Sequence[str]
    described: str
    names: Mapping[str, str]

    def page(self, tx: db.Transaction, after: int) -> list[dict[str, Any]]:
        told = ", ".join(_told(tx.dialect, each) for each in self.columns)
        sql = (
            f"SELECT {told} FROM {self.place}"  # noqa: S608 — every name is quoted
            f" WHERE id > :after ORDER BY id LIMIT {PIECE}"
        )
        rows = tx.all(adhoc(sql), after=after)
        return [dict(zip(self.columns, row, strict=True)) for row in rows]


COLUMNS = adhoc(
    "SELECT name FROM pragma_table_info(:table) WHERE :schema <> ''",
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = :schema AND table_name = :table ORDER BY ordinal_position",
)


def _table(tx: db.Transaction, schema: str, name: str, said: str | None) -> _Table:
    columns = [each for (each,) in tx.all(COLUMNS, table=name, schema=schema)]
    if not {"id", "status"} <= {*columns}:
        raise BadInput(
            say(
                "there is no table {table} with the columns id and status in {schema}",
                table=name,
                schema=schema,
            )
        )
    described = next((each for each in (said, *DESCRIBED) if each in columns), None)
    if described is None or (said is not None and described != said):
        raise BadInput(
            say(
                "which column says what is to be quoted? Name it: one of {columns}",
                columns=", ".join(columns),
            )
        )
    names = {
        ours: next(each for each in theirs if each in columns)
        for ours, theirs in NAMES.items()
        if {*theirs} & {*columns}
    }
    place = quoted(name) if tx.dialect == "sqlite" else quoted(schema, name)
    return _Table(place, columns, described, names)


def _told(dialect: str, column: str) -> str:
    """Times and numbers as they are, everything else as text."""
    plain = column in ("id", "attempt_number", *TIMES)
    name = quoted(column)
    return name if plain or dialect == "sqlite" else f"CAST({name} AS text) AS {name}"


# — here —


@dataclass(slots=True)
class _Adopter:
    retoma: Retoma
    there: db.Database
    table: _Table
    source: str
    actor: str
    apply: bool
    pay_again: bool

    async def run(self) -> Adoption:
        told = Adoption(self.source, self.apply)
        here = await self.retoma.database()
        now = await here.read(engine.now)
        after = 0
        while rows := await self.there.read(partial(self.table.page, after=after)):
            told.found += len(rows)
            numbers = [_number(row["id"]) for row in rows]
            after = numbers[-1]
            known, taken = await here.read(partial(self._known, numbers=numbers))
            told.already += len(known)
            wanted = [
                made
                for number, row in zip(numbers, rows, strict=True)
                if number not in known
                and (made := self._row(number, row, taken, now, told)) is not None
            ]
            if self.apply and wanted:
                await self.retoma.write(partial(self._write, rows=wanted))
        await self._jobs(told)
        return told

    def _known(self, tx: db.Transaction, numbers: Sequence[int]) -> tuple[set[int], set[int]]:
        """Those taken over before; and numbers that are somebody's here."""
        ids = json.dumps([str(each) for each in numbers])
        rows = tx.all(SQL.adopted_among, source=self.source, ids=ids)
        known = {int(old) for old, _ in rows if old is not None}
        return known, {int(taken) for _, taken in rows if taken is not None}

    def _row(
        self,
        number: int,
        row: Mapping[str, Any],
        taken: set[int],
        now: datetime,
        told: Adoption,
    ) -> dict[str, Any] | None:
        try:
            made = _read(row, self.table, pay_again=self.pay_again)
        except _Left as left:
            told.left += 1
            told.note(say("{number}: {why}", number=number, why=left.args[0]))
            return None
        if made.status is QuoteStatus.PROCESSING and made.beaten(now):
            told.at_work += 1
            return None
        is_open = made.status in OPEN
        told.open += is_open
        told.history += not is_open
        if is_open:
            told.analyses += made.before.asked is not None
            told.searches += made.before.found is not None
            told.tested += len(made.before.tested)
        keeps = number not in taken and 0 < number < LARGEST
        told.renumbered += not keeps
        origin = {"adopted_from": self.source, "adopted_id": str(number)}
        return {
            "id": number if keeps else None,
            "code": made.code,
            "kind": str(made.kind),
            "description": made.description,
            "created_at": made.created_at,
            "was": {**made.was, **origin},
        }

    def _write(self, tx: Transaction, rows: Sequence[dict[str, Any]]) -> None:
        """Those with a number of their own first: the others are given what is free then."""
        rows = sorted(rows, key=lambda row: row["id"] is None)
        numbers = [row["id"] for row in rows if row["id"] is not None]
        tx.all(SQL.pass_numbers, last=max(numbers, default=1))
        told = [{**row, "created_at": as_kept(tx.dialect, row["created_at"])} for row in rows]
        new = tx.all(SQL.adopt_quotes, rows=json.dumps(told), actor=self.actor)
        if new:
            tx.tell("quotes.adopted", self.source, {"new": len(new)}, actor=self.actor)

    async def _jobs(self, told: Adoption) -> None:
        """Those of one lote there are one lote here; whoever was in none has a job of his own."""
        while self.apply:
            lotes, left = await self.retoma.write(self._submit)
            told.lotes += lotes
            if not left:
                return

    def _submit(self, tx: Transaction) -> tuple[int, bool]:
        """Lotes begun, and whether any quote without a job may be left."""
        rows = tx.all(SQL.adopted_open, source=self.source, n=LOTE)
        full = len(rows) == LOTE
        groups = [(old, list(its)) for old, its in groupby(rows, key=itemgetter(1))]
        if full and len(groups) > 1:
            groups.pop()  # it may go on behind what was read: all of it comes with the next
        lotes = 0
        for old, members in groups:
            if old is None:
                full = full or len(members) > PIECE
                self._submit_each(tx, [int(id_) for id_, *_ in members[:PIECE]])
            else:
                self._submit_lote(tx, str(old), members)
                lotes += 1
        return lotes, full

    def _submit_each(self, tx: Transaction, quotes: Sequence[int]) -> None:
        """A batch would make a lote of them, which they never were."""
        for quote in quotes:
            job = tx.submit(KIND, quote, actor=self.actor)
            tx.run(store.SQL.name_job, quote=quote, job=job.id)

    def _submit_lote(self, tx: Transaction, old: str, members: Sequence[Sequence[Any]]) -> None:
        """In a lote a code is one quote's; of two the second goes without, and remembers it."""
        firsts = {code: quote for quote, _, code in reversed(members)}
        again = [
            int(quote)
            for quote, _, code in members
            if code is not None and quote != firsts[code]
        ]
        if again:
            tx.run(SQL.forget_codes, quotes=json.dumps(again))
        quotes = [int(id_) for id_, *_ in members]
        name = f"{self.source} {old}"[-200:]
        batch = tx.submit_many(KIND, quotes, name=name, actor=self.actor)
        tx.run(store.SQL.name_jobs, lote=batch.id)


# — what a row becomes —


class _Left(Exception):
    """It cannot be taken over."""


@dataclass(frozen=True, slots=True)
class _Made:
    status: QuoteStatus
    description: str
    kind: QuoteKind
    code: str | None
    created_at: datetime | None
    was: Mapping[str, Any]
    before: Before

    def beaten(self, now: datetime) -> bool:
        """Whether somebody there said within ten minutes that he is at work on it."""
        last = self.was.get("last_heartbeat")
        return last is not None and now - datetime.fromisoformat(last) < QUIET


def _read(row: Mapping[str, Any], table: _Table, *, pay_again: bool) -> _Made:
    status = _status(row["status"])
    was = {name: told for name in row if (told := _kept(name, row[name])) is not None}
    was["status"] = str(status)
    if was.get("processing_checkpoint") not in [None, *ProcessingCheckpoint]:
        was["processing_checkpoint_was"] = was.pop("processing_checkpoint")
    was["attempt_number"] = _whole(row.get("attempt_number"))
    was |= _named(row, table, "batch_request_id")
    try:
        before = read_before(was)
    except Unreadable as error:
        if status in OPEN and not pay_again:
            raise _Left(
                say(
                    "{column} was paid for, in a shape that we do not know", column=error.column
                )
            ) from None
        if status in OPEN:
            was[f"{error.column}_was"] = was.pop(error.column)
        before = Before(None, None, {})
    described = str(row.get(table.described) or "").strip()
    if status in OPEN and not 0 < len(described) <= LONGEST:
        raise _Left(say("it does not say what is to be quoted, or too much"))
    kind = str(row.get(table.names.get("kind", "")) or "").casefold()
    code = row.get(table.names.get("code", ""))
    return _Made(
        status=status,
        description=described.replace("\0", "") or "—",
        kind=KINDS.get(kind, QuoteKind.AUTO),
        code=None if code in (None, "") else str(code)[:100],
        created_at=instant(row.get("created_at")),
        was=was,
        before=before,
    )


def _status(told: Any) -> QuoteStatus:
    said = str(told or "PENDING").upper()
    try:
        return QuoteStatus("CANCELED" if said == "CANCELLED" else said)
    except ValueError:
        raise _Left(say("its status is {status!r}", status=told)) from None


def _kept(name: str, value: Any) -> Any:
    """As JSON: documents as such, times with their zone, everything else as it is told."""
    if value is None or name == "id":
        return None
    if name in DOCUMENTS:
        return _document(value)
    if name in TIMES:
        at = instant(value)
        return None if at is None else at.isoformat()
    return value if isinstance(value, str | int | float | bool) else str(value)


def _document(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _named(row: Mapping[str, Any], table: _Table, name: str) -> dict[str, str]:
    value = row.get(table.names.get(name, ""))
    return {} if value in (None, "") else {name: str(value)}


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise BadInput(say("quotes have whole numbers: {id!r} is none", id=value)) from None


def _whole(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        return 0
