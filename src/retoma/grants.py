"""Least privileges on PostgreSQL: what the role of each program may do with each table.

The owner of the schema migrates, restores and deletes events; every other program has its own role. A test
fails if a table of the engine has no entry here. Pure, except `read_schema`.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from retoma.db import Transaction, adhoc
from retoma.db.names import quoted
from retoma.engine.store import list_references

SCHEMA: Final = "retoma"


class Program(StrEnum):
    """Which program logs in with the role."""

    WEB = "web"  # retoma serve
    RUNNER = "runner"  # retoma runner
    READER = "reader"  # metrics, lists, dashboards: neither payloads nor secrets


class Rights(NamedTuple):
    """Privileges on one table: first letters for the server and the runners, readable columns for readers."""

    web: str = ""
    runner: str = ""
    reader: str = ""


# S: SELECT, I: INSERT, U: UPDATE, D: DELETE.
TABLES: Final[Mapping[str, Rights]] = {
    # Jobs. Only retention deletes them, and it belongs to the runners.
    "jobs": Rights(
        "SIU",
        "SIUD",
        "id batch kind queue key state priority run_at turn deadline version limit_key aside runner"
        " epoch seq generation failures lost released fresh_from checkpoint progress progress_at"
        " code cancel_at correlation traceparent created_at started_at ended_at discarded_at",
    ),
    "steps": Rights(
        "SIU", "SIUD", "job name version key state epoch generation begun_at saved_at"
    ),
    "batches": Rights(
        "SIU", "SIUD", "id key kind name created_at first_job last_job paused_at"
    ),
    "batch_pace": Rights("SIU", "SIUD", "batch minute n"),
    "counts": Rights("SIU", "SIUD", "batch kind state code n"),
    "hints": Rights("SIUD", "SIUD", "job queue epoch hinted_at"),
    "kinds": Rights("SIU", "SIU", "name application queue"),
    "reuse": Rights("SIU", "SIUD", "hash job kind step version at"),
    "fillings": Rights("SIUD", "SIUD", "id lease_until jobs batch"),
    "filling_jobs": Rights("SID", "SID", "filling slice place kind"),
    "answers": Rights("SIUD", "SIUD"),
    # History. Only the owner may change or delete it.
    "events": Rights("SI", "SI", "job seq type at epoch actor xid"),
    "audit": Rights("SI", "SI", "id at verb xid"),
    "evidence": Rights("SIUD", "SIUD", "sha256 size codec stored_at used_at"),
    "job_evidence": Rights("SIU", "SIUD", "job name epoch sha256 media cut_from at"),
    "places_left": Rights("SID", "SID"),
    # Metrics.
    "tallies": Rights(
        "SID", "SID", "id batch kind from_state to_state code minute n event bucket ms runner"
    ),
    "totals": Rights("SIU", "SIU", "kind event bucket n ms"),
    "pace": Rights("SIU", "SIUD", "kind minute state code bucket n ms"),
    "runner_totals": Rights("SIU", "SIUD", "boot event n ms"),
    "runner_kinds": Rights("SIU", "SIUD", "boot kind event n ms"),
    "alerts": Rights(
        "SIU",
        "SIUD",
        "id rule subject severity since closed_at raised_told_at closed_told_at acknowledged_at"
        " silenced_until",
    ),
    # Runners and schedules.
    "runners": Rights(
        "SIU",
        "SIUD",
        "boot name host pid pid_started version slots knows state since beat_at lease_until"
        " drain_at trouble",
    ),
    "duties": Rights("SIU", "SIU", "name boot term"),
    "schedules": Rights(
        "SIUD",
        "SIUD",
        "name kind cron timezone missed queue priority version next_at paused_at",
    ),
    "ticks": Rights("SIU", "SIUD", "schedule at job"),
    # Limits, pools and costs.
    "limits": Rights("SIU", "SIU", "key cap used by_hand"),
    "rates": Rights(
        "SIU",
        "SIU",
        "key rate burst tokens at adaptive bound ceiling cuts passed blocked usual refused recorded looked_at"
        " refused_at",
    ),
    "breakers": Rights(
        "SIU", "SIU", "name state failures threshold rest since probe_at job epoch"
    ),
    "pools": Rights("SIU", "SIU", "name pick cool_down off_after healthy use_cap"),
    "pool_items": Rights(
        "SIU",
        "SIU",
        "id pool vendor state scope score uses failures job last_job epoch generation ready_at used_at"
        " failed_at worked_at",
    ),
    "charges": Rights(
        "SID", "SID", "id job batch kind application provider model unit sort amount at"
    ),
    "costs": Rights("SIU", "SIUD", "scope name period provider model unit sort amount"),
    "prices": Rights("SIU", "SIU", "provider model unit since amount currency per"),
    "exchange": Rights("SIU", "SIU", "since brl_per_usd"),
    "budgets": Rights(
        "SIUD", "SIUD", "gate scope name per currency nanos shut shut_until warned"
    ),
    # Settings and metadata.
    "knobs": Rights("SIUD", "S", "name value changed_at"),
    "pauses": Rights("SIUD", "S", "scope name since"),
    "refers": Rights("SIU", "SIU", "table_name column_name what"),
    "meta": Rights("SIU", "SIU", "name value"),
    "retoma_migrations": Rights("S", "S", "room number name checksum applied_at"),
    # Access control and secrets; only the server signs people in.
    "people": Rights("SIU"),
    "api_keys": Rights("SIU"),
    "sign_in_links": Rights("SIUD"),
    "sign_in_sessions": Rights("SIUD"),
    "secrets": Rights("SIUD", "SIUD"),
    # Views.
    "attempts": Rights("S", "S", "job epoch runner claimed_at ended_at ended"),
}
OF_APPLICATIONS: Final = Rights("SIUD", "SIUD")
WORDS: Final = {"S": "SELECT", "I": "INSERT", "U": "UPDATE", "D": "DELETE"}
# A reader sees only those columns of an application's tables that cannot hold personal text, or that name
# a job or a batch.
READABLE_TYPES: Final = ("timestamp with time zone", "date", "boolean")
READABLE_NAMES: Final = ("id", "job", "batch", "state", "status", "kind")

FUNCTIONS: Final = {
    Program.WEB: ("count_denied(bigint, json)",),
    Program.RUNNER: (
        "retire_events(json, timestamptz)",
        "retire_audit(bigint, timestamptz)",
    ),
}

# Limits for connections that set none themselves; retoma's own connections set the last two.
SESSIONS: Final = {
    Program.WEB: {"statement_timeout": "2min"},
    Program.RUNNER: {"statement_timeout": "10min"},
    Program.READER: {"statement_timeout": "30s", "default_transaction_read_only": "on"},
}
EVERY_SESSION: Final = {
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "20s",
}


class Column(NamedTuple):
    """One column of a table in our schema."""

    table: str
    name: str
    type: str


COLUMNS = adhoc(
    "SELECT 1",
    """SELECT c.relname, a.attname, format_type(a.atttypid, NULL)
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
       WHERE c.relnamespace = to_regnamespace('retoma') AND c.relkind IN ('r', 'p', 'v')
         AND a.attnum > 0 AND NOT a.attisdropped
       ORDER BY c.relname, a.attnum""",
)
DATABASE = adhoc("SELECT 1", "SELECT current_database()")


class Seen(NamedTuple):
    """The parts of a schema that the grants depend on."""

    database: str
    columns: list[Column]
    references: frozenset[tuple[str, str]]  # (table, column): ids of jobs or batches


def read_schema(tx: Transaction) -> Seen:
    """Read the tables of the engine and of every application in this database."""
    [(database,)] = tx.all(DATABASE)
    columns = [Column(*row) for row in tx.all(COLUMNS)]
    named = {(ref.table.split(".")[-1], ref.column) for ref in list_references(tx)}
    return Seen(database, columns, frozenset(named))


def grants(program: Program, role: str, seen: Seen) -> list[str]:
    """Return statements that grant a role what its program needs and revoke everything else. Apply them
    again after every `retoma db upgrade`; repeating them is safe."""
    return [
        *_role(role),
        *_sessions(program, role, seen.database),
        *_revoked(role, seen.database),
        f"GRANT CONNECT ON DATABASE {quoted(seen.database)} TO {quoted(role)}",
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO {quoted(role)}",
        *(_granted(program, role, seen)),
    ]


def _role(role: str) -> Iterator[str]:
    name = quoted(role)
    text = role.replace("'", "''")
    yield (
        f"DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{text}')"
        f" THEN CREATE ROLE {name} LOGIN; END IF; END $do$"
    )


def _sessions(program: Program, role: str, database: str) -> Iterator[str]:
    of = f"ALTER ROLE {quoted(role)} IN DATABASE {quoted(database)}"
    # The temp schema last, so that a temporary table cannot shadow ours.
    yield f"{of} SET search_path = {SCHEMA}, public, pg_temp"
    for name, value in (EVERY_SESSION | SESSIONS[program]).items():
        yield f"{of} SET {name} = '{value}'"


def _revoked(role: str, database: str) -> Iterator[str]:
    """Yield statements that revoke all privileges the role and PUBLIC had."""
    name = quoted(role)
    yield "REVOKE CREATE ON SCHEMA public FROM PUBLIC"
    yield f"REVOKE TEMPORARY ON DATABASE {quoted(database)} FROM PUBLIC"
    yield f"REVOKE ALL ON DATABASE {quoted(database)} FROM {name}"
    yield f"REVOKE ALL ON SCHEMA {SCHEMA} FROM {name}"
    for what in ("TABLES", "SEQUENCES", "FUNCTIONS"):
        yield f"REVOKE ALL ON ALL {what} IN SCHEMA {SCHEMA} FROM {name}"


def _granted(program: Program, role: str, seen: Seen) -> Iterator[str]:
    for table in dict.fromkeys(column.table for column in seen.columns):
        on = f"ON {quoted(SCHEMA, table)} TO {quoted(role)}"
        if program is Program.READER:
            if shown := _readable(table, seen):
                yield f"GRANT SELECT ({', '.join(map(quoted, shown))}) {on}"
            continue
        letters = getattr(TABLES.get(table, OF_APPLICATIONS), program.value)
        if letters:
            yield f"GRANT {', '.join(WORDS[letter] for letter in letters)} {on}"
    for function in FUNCTIONS.get(program, ()):
        yield f"GRANT EXECUTE ON FUNCTION {SCHEMA}.{function} TO {quoted(role)}"


def _readable(table: str, seen: Seen) -> list[str]:
    columns = [column for column in seen.columns if column.table == table]
    if table in TABLES:
        allowed = TABLES[table].reader.split()
        return [column.name for column in columns if column.name in allowed]
    return [
        column.name
        for column in columns
        if column.type in READABLE_TYPES
        or column.name in READABLE_NAMES
        or (table, column.name) in seen.references
    ]
