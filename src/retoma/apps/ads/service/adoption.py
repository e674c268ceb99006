"""A database of the document's shape (§3), or of the one before its migration (§3.7), taken over.

Only read there. Here everything new is written in pieces, each with the memory of what it was: who is
interrupted runs it again, and nothing comes twice. A mission that was under way is never sent again
(H-50): nobody knows what became of its remote job, and a person decides."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from retoma import db
from retoma.apps.ads import store
from retoma.apps.ads.model import Checkpoint, Event, Status
from retoma.apps.ads.service.connections import secrets_for
from retoma.apps.ads.service.inputs import NEW, NewMission, NewProxy, NewWorker
from retoma.apps.ads.service.resources import insert_resource
from retoma.apps.ads.store import adoption, onboarding
from retoma.apps.ads.store.failures import in_portuguese
from retoma.apps.ads.store.rows import Sort
from retoma.db import adhoc, quoted
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.toolkit.foreign import instant, named
from retoma.words import say

PIECE: Final = 500  # missions, or lines of the log, in one transaction
THINGS: Final = (Sort.WORKERS, Sort.PROXIES, Sort.WRITERS)
TABLES: Final[Mapping[str, str]] = {
    "workers": "id name url api_key storage_domain active created_at",
    "proxies": "id name host port username password active created_at",
    "writers": "id name url api_key active created_at",
    "missions": "id date_start date_end media_type languages status checkpoint worker_id"
    " worker_job_id job_id worker_data_url proxy_used writer_job_id ads_count error_code"
    " error_message retry_count created_at queued_at started_at finished_at",
    "mission_logs": "id mission_id event details timestamp",
}


@dataclass(slots=True)
class Counts:
    """Of one table: how many are there, and what becomes of them."""

    found: int = 0
    new: int = 0
    already: int = 0  # taken over before
    same: int = 0  # what is here already under another id
    left: int = 0  # cannot be taken over


@dataclass(slots=True)
class Adoption:
    """What was taken over, or would be."""

    source: str
    applied: bool
    shape: str
    counts: dict[str, Counts] = field(
        default_factory=lambda: {each: Counts() for each in TABLES}
    )
    under_way: int = 0  # missions that were running there
    notes: list[str] = field(default_factory=list)


async def adopt_database(
    retoma: Retoma,
    url: str,
    *,
    actor: str,
    apply: bool = False,
    schema: str = "public",
    source: str | None = None,
) -> Adoption:
    """Counts by default; with `apply` it is done."""
    there = db.open(url, patience=0)
    try:
        return await _Adopter(retoma, there, schema, source or named(url), actor, apply).run()
    finally:
        there.close()


@dataclass(slots=True)
class _Adopter:
    retoma: Retoma
    there: db.Database
    schema: str
    source: str
    actor: str
    apply: bool

    async def run(self) -> Adoption:
        has = await self.there.read(
            lambda tx: {each: _columns(tx, self.schema, each) for each in TABLES}
        )
        if not has["missions"] or not has["workers"]:
            raise BadInput(
                say("there are no tables missions and workers in {schema}", schema=self.schema)
            )
        shape = "§3" if "worker_job_id" in has["missions"] else "§3.7"
        told = Adoption(self.source, self.apply, shape)
        for sort in THINGS:
            rows = await self.there.read(
                partial(_all, schema=self.schema, table=sort, columns=has[sort])
            )
            await self._things(sort, rows, told)
        rows = await self.there.read(
            lambda tx: _all(tx, self.schema, "missions", has["missions"])
        )
        await self._missions(adoption.in_order(rows), told)
        await self._logs(has["mission_logs"], told)
        return told

    # — workers, proxies, writers —

    async def _things(
        self, sort: Sort, rows: Sequence[Mapping[str, Any]], told: Adoption
    ) -> None:
        secrets = await secrets_for(self.retoma, self.actor) if self.apply else None

        def take(tx: Transaction) -> Counts:
            counts = Counts(found=len(rows))
            notes: list[str] = []
            known = adoption.adopted(tx, self.source, sort)
            here = _here(tx, sort)
            made: dict[str, str | None] = {}
            for row in adoption.in_order(rows):
                old = str(row["id"])
                body, why = _body(sort, row)
                if old in known:
                    counts.already += 1
                elif body is None:
                    counts.left += 1
                    notes.append(f"{sort} {old}: {why}")
                elif (same := _same(here, sort, body)) is not None:
                    counts.same += 1
                    made[old] = same
                else:
                    counts.new += 1
                    if secrets is not None:
                        made[old] = self._add(tx, sort, body, row, secrets)
                        here |= dict.fromkeys(_places(sort, body), made[old] or "")
                    else:
                        here |= dict.fromkeys(_places(sort, body), old)
            if self.apply and made:
                adoption.remember(tx, self.source, sort, made)
                tx.tell("ads.adopted", sort, {"new": counts.new}, actor=self.actor)
            told.notes[:] = [*kept, *notes]
            return counts

        kept = list(told.notes)
        told.counts[sort] = await self.retoma.write(take)

    def _add(
        self,
        tx: Transaction,
        sort: Sort,
        body: Any,
        row: Mapping[str, Any],
        secrets: store.Secrets,
    ) -> str:
        if isinstance(body, NewProxy):
            taken = {key for key in onboarding.known_proxies(tx) if key[0] == "name"}  # type: ignore[index]
            name = body.name or (body.host if body.port is None else f"{body.host}:{body.port}")
            if ("name", name) in taken:
                body = body.model_copy(update={"name": f"{name} ({row['id']})"})
        id_ = insert_resource(tx, secrets, body)
        is_on = row.get("active") in (None, True, 1)
        if not is_on and not (isinstance(body, NewWorker) and body.storage_domain is None):
            store.deactivate(tx, sort, [id_], actor=self.actor)
        return id_

    # — missions —

    async def _missions(self, rows: Sequence[Mapping[str, Any]], told: Adoption) -> None:
        counts = told.counts["missions"]
        counts.found = len(rows)
        database = await self.retoma.database()
        known = await database.read(lambda tx: adoption.adopted(tx, self.source, "missions"))
        workers = await database.read(lambda tx: adoption.adopted(tx, self.source, "workers"))
        wanted: dict[str, Mapping[str, Any]] = {}
        for row in rows:
            old = str(row["id"])
            if old in known:
                counts.already += 1
                continue
            made = _mission(row, workers)
            if made is None:
                counts.left += 1
                told.notes.append(f"missions {old}: no dates, media type or languages of ours")
                continue
            told.under_way += made["ended"]
            wanted[old] = made
        counts.new = len(wanted)
        for piece in _pieces(list(wanted.items())):
            if self.apply:
                await self.retoma.write(
                    partial(
                        adoption.adopt_missions,
                        source=self.source,
                        missions=dict(piece),
                        actor=self.actor,
                    )
                )

    # — the log —

    async def _logs(self, has: Sequence[str], told: Adoption) -> None:
        if not has:
            return
        counts = told.counts["mission_logs"]
        database = await self.retoma.database()
        ids = await database.read(lambda tx: adoption.adopted(tx, self.source, "missions"))
        after = ""
        while rows := await self.there.read(
            partial(_page, schema=self.schema, columns=has, after=after)
        ):
            first, after = str(rows[0]["id"]), str(rows[-1]["id"])
            known = await database.read(
                partial(
                    adoption.adopted,
                    source=self.source,
                    sort="mission_logs",
                    first=first,
                    last=after,
                )
            )
            counts.found += len(rows)
            counts.already += len(known)
            new = {
                str(row["id"]): line
                for row in rows
                if str(row["id"]) not in known and (line := _line(row, ids)) is not None
            }
            counts.new += len(new)
            counts.left += len(rows) - len(known) - len(new)
            if self.apply and new:
                await self.retoma.write(
                    partial(adoption.adopt_logs, source=self.source, logs=new)
                )


# — reading there —


def _columns(tx: db.Transaction, schema: str, table: str) -> list[str]:
    """Those of the document's columns that are there; none where there is no such table."""
    asked = adhoc(
        "SELECT name FROM pragma_table_info(:table) WHERE :schema <> ''",
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = :schema AND table_name = :table",
    )
    there = {name for (name,) in tx.all(asked, table=table, schema=schema)}
    return [each for each in TABLES[table].split() if each in there]


def _all(
    tx: db.Transaction, schema: str, table: str, columns: Sequence[str]
) -> list[dict[str, Any]]:
    if not columns:
        return []
    rows = tx.all(adhoc(_select(tx, schema, table, columns)))
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _page(
    tx: db.Transaction, schema: str, columns: Sequence[str], after: str
) -> list[dict[str, Any]]:
    sort = ' COLLATE "C"' if tx.dialect == "postgres" else ""
    sql = (
        f"{_select(tx, schema, 'mission_logs', columns)}"
        f" WHERE CAST(id AS text){sort} > :after ORDER BY CAST(id AS text){sort} LIMIT {PIECE}"
    )
    return [dict(zip(columns, row, strict=True)) for row in tx.all(adhoc(sql), after=after)]


def _select(tx: db.Transaction, schema: str, table: str, columns: Sequence[str]) -> str:
    """Identifiers are the document's own, and a schema that is quoted."""
    told = ", ".join(_told(tx.dialect, each) for each in columns)
    place = quoted(table) if tx.dialect == "sqlite" else quoted(schema, table)
    return f"SELECT {told} FROM {place}"  # noqa: S608


def _told(dialect: str, column: str) -> str:
    if dialect == "postgres" and column == "languages":
        return "CAST(to_json(languages) AS text)"
    if column in ("id", "status", "checkpoint", "event", "details", "media_type"):
        return f"CAST({column} AS text)"
    return column


# — what it becomes —


def _body(sort: Sort, row: Mapping[str, Any]) -> tuple[Any, str]:
    shape = NEW[sort]
    given = {
        name: row.get(name) for name in shape.model_fields if row.get(name) not in (None, "")
    }
    try:
        return shape.model_validate(given), ""
    except ValidationError as error:
        return None, ", ".join(str(each["loc"][0]) for each in error.errors() if each["loc"])


def _here(tx: Transaction, sort: Sort) -> dict[Any, str]:
    match sort:
        case Sort.PROXIES:
            known = onboarding.known_proxies(tx)
            return {key: id_ for key, id_ in known.items() if key[0] == "place"}  # type: ignore[index]
        case Sort.WORKERS:
            return dict(onboarding.known_workers(tx))
        case Sort.WRITERS:
            return dict(onboarding.known_writers(tx))


def _places(sort: Sort, body: Any) -> Sequence[Any]:
    if sort is Sort.PROXIES:
        return onboarding.proxy_keys(None, body.host, body.port, body.username)[1:]
    return [body.url]


def _same(here: Mapping[Any, str], sort: Sort, body: Any) -> str | None:
    return next((here[key] for key in _places(sort, body) if key in here), None)


def _mission(
    row: Mapping[str, Any], workers: Mapping[str, str | None]
) -> dict[str, Any] | None:
    languages = _languages(row.get("languages"))
    names = ("date_start", "date_end", "media_type")
    try:
        asked = NewMission.model_validate(
            {**{name: str(row.get(name)) for name in names}, "languages": languages}
        )
        was = Status(row.get("status") or "queued")
    except (ValidationError, ValueError):
        return None
    running = was is Status.RUNNING
    new = was in (Status.NOVO, Status.QUEUED)
    job = row.get("worker_job_id") or row.get("job_id")
    told = {name: row.get(name) for name in TABLES["missions"].split() if name in row}
    for name in ("job_id", "retry_count"):
        told.pop(name, None)
    kept: dict[str, Any] = {
        **dict.fromkeys(
            ("worker_data_url", "proxy_used", "writer_job_id", "ads_count", "error_code")
        ),
        **told,
        "date_start": asked.date_start.isoformat(),
        "date_end": asked.date_end.isoformat(),
        "media_type": str(asked.media_type),
        "languages": asked.languages,
        "status": str(_status(was)),
        "checkpoint": _checkpoint(was, row.get("checkpoint")),
        "generation": 0 if new else 1,
        "worker_id": workers.get(str(row.get("worker_id"))),
        "worker_job_id": job,
        "scrape_retries": row.get("retry_count") or 0,
        "error_message": row.get("error_message"),
        "ended": int(running),
        **{name: instant(row.get(name)) for name in ("created_at", "queued_at")},
        **{name: instant(row.get(name)) for name in ("started_at", "finished_at")},
    }
    if running:
        why = say(
            "adopted while it ran in the system before (job {job}): its remote job may still be"
            " active; make sure before you add it to the queue",
            job=job or "—",
        )
        kept |= {"error_code": "ERROR500", "error_message": in_portuguese(why)}
    if new:
        kept |= dict.fromkeys(("worker_id", "worker_job_id", "queued_at", "started_at"))
    return kept


def _status(was: Status) -> Status:
    """What waited waits for a person; what ran has failed: nobody here knows how it ended."""
    if was is Status.RUNNING:
        return Status.FAILED
    return Status.NOVO if was is Status.QUEUED else was


def _checkpoint(was: Status, told: Any) -> str | None:
    if was in (Status.NOVO, Status.QUEUED):
        return None
    if was is Status.COMPLETED:
        return str(Checkpoint.FINALIZADO)
    return str(told) if told in list(Checkpoint) else str(Checkpoint.ATRIBUIDO)


def _line(row: Mapping[str, Any], ids: Mapping[str, str | None]) -> dict[str, Any] | None:
    """None where it tells of something the document does not know."""
    if row.get("event") not in list(Event):
        return None
    mission = row.get("mission_id")
    details = row.get("details")
    try:
        told = json.loads(details) if isinstance(details, str) else None
    except ValueError:
        return None
    return {
        "mission": None if mission is None else ids.get(str(mission)) or str(mission),
        "event": row["event"],
        "details": told,
        "at": instant(row.get("timestamp")),
    }


def _languages(value: Any) -> list[str]:
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    if isinstance(value, str):
        return value.strip("{}").replace(",", " ").split()
    return [str(each) for each in value] if isinstance(value, list) else []


def _pieces(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for at in range(0, len(items), PIECE):
        yield items[at : at + PIECE]
