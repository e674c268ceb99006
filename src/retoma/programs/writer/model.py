"""The nouns of the writer: what is wanted, by which profile, and how it went. No I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from retoma.engine.rules.errors import Action, BadInput, Code, ErrorClass, table
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.words import say

UPSERT: Final = "upsert"
KEPT: Final = 200  # failed items of a job that are kept; all are counted
DATA: Final = 10_000  # characters of a failed item that are kept
BEGINNING: Final = 2_000  # characters of one that is larger

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,49}")
KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
# Quotes and backslashes would need words of their own in a path of SQLite's JSON.
COLUMN: Final = re.compile(r"[^\x00-\x1f\x7f\"\\]{1,63}")

CODES: Final[Mapping[str, Code]] = table(
    Code(
        "unknown_profile",
        ErrorClass.CONFIG,
        Action.BURY,
        None,
        "The profile was removed after the request was taken.",
    ),
    Code(
        "config",
        ErrorClass.CONFIG,
        Action.BURY,
        None,
        "The source or the target refuses our credentials, or a secret does not open.",
    ),
    Code(
        "source_broken",
        ErrorClass.DATA,
        Action.RETRY,
        3,
        "The JSON is cut short or cannot be read; whole groups before it are stored and counted.",
    ),
    Code(
        "no_such_array",
        ErrorClass.DATA,
        Action.BURY,
        None,
        "The source is JSON, but has no array under the profile's path.",
    ),
    Code(
        "target_away",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "The target database does not answer, is busy or full; the job goes on where it stood.",
    ),
    Code(
        "target_schema",
        ErrorClass.CONFIG,
        Action.BURY,
        None,
        "The target refuses the statement itself: a table, a column or a right is missing.",
    ),
)


class Family(StrEnum):
    """What kind of value a column takes, whatever its database calls the type."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    DATE = "date"
    UUID = "uuid"
    JSON = "json"
    OTHER = "other"  # the database says itself what it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a target table, as it was found there."""

    name: str
    type: str  # as the database calls it: shown, never part of a statement
    family: Family
    nullable: bool
    has_default: bool
    most: int | None = None  # characters, or the largest whole number

    def __post_init__(self) -> None:
        if not COLUMN.fullmatch(self.name):
            raise BadInput(say("{name!r} cannot be the column of a profile", name=self.name))

    @property
    def by_type(self) -> bool:
        """Whether the type of a value tells that it fits."""
        if self.family is Family.TEXT:
            return self.most is None
        return self.family in (Family.BOOLEAN, Family.JSON, Family.OTHER)

    @property
    def needed(self) -> bool:
        """Whether an item without it cannot be stored."""
        return not self.nullable and not self.has_default


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a request may name, and all that is done for it. Secrets lie in the vault."""

    name: str
    table: str
    schema: str
    conflict_key: str
    json_path: str
    columns: tuple[Column, ...]
    origins: tuple[str, ...]  # where sources may be: https://storage.example.org
    headers: tuple[str, ...] = ()  # names of those that sources are asked with
    rest: str | None = None  # the column for what no other column takes

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise BadInput(
                say(
                    "a profile is called by small letters, digits, - and _, not {name!r}",
                    name=self.name,
                )
            )
        if not self.json_path or len(self.json_path) > 200:
            raise BadInput(say("a json_path is the name of one field, 1 to 200 characters"))
        named = {each.name for each in self.columns}
        for wanted in (self.conflict_key, self.rest):
            if wanted is not None and wanted not in named:
                raise BadInput(
                    say("{table} has no column {column!r}", table=self.table, column=wanted)
                )

    def matches(self, asked: "Asked") -> bool:
        return (self.table, self.schema, UPSERT, self.conflict_key, self.json_path) == (
            asked.table,
            asked.schema,
            asked.operation,
            asked.conflict_key,
            asked.json_path,
        )

    def allows(self, url: str) -> bool:
        return origin_of(url) in self.origins


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request names. It is compared with profiles, and goes nowhere else."""

    table: str
    schema: str
    operation: str
    conflict_key: str
    json_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The payload of a job: by which profile, from where; `headers`: the key they are sealed under."""

    profile: str
    url: str
    headers: str | None = None


@dataclass(frozen=True, slots=True)
class FailedItem:
    """One item that could not be stored, and why."""

    index: int
    data: Any
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How far a job is. `total` is not known before the end of the source was seen."""

    total: int | None = None
    processed: int = 0
    stored: int = 0
    failed: int = 0
    items: list[FailedItem] = field(default_factory=list)  # the first of the failed


class Status(StrEnum):
    """What a job is to whoever asked for it."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    PARTIAL = "partial"


def status_of(job: Job, report: Report) -> Status:
    if not job.ended and job.state is not State.PARKED:
        return Status.PROCESSING
    if job.state is not State.DONE or (report.failed and not report.stored):
        return Status.FAILED
    return Status.PARTIAL if report.failed else Status.COMPLETED


def origin_of(url: str) -> str | None:
    """Scheme, host and port, as a browser would write them; None: it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if port in (None, usual) else f":{port}")
