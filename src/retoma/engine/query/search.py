"""Jobs as somebody wants them, looked for without walking through all of history.

What has a short way of its own (a state, a kind, a batch, dead letters) is walked by that; what has
none (a checkpoint, a code, a text, a fingerprint) is looked for among the newest so many of those.
A look that ends before its page is full says where the next one begins.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from retoma.codec import decode
from retoma.db import Row, Transaction, moment
from retoma.engine.query.counters import count_kinds
from retoma.engine.query.jobs import ids_of
from retoma.engine.query.page import SQL, checked
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.fingerprint import fingerprint, shape
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.words import say

LOOK = 2_000  # jobs that one page looks at
COUNTED = 10_000  # jobs that a count looks at; beyond it says "at least"
WITHIN = 2_000  # characters of a payload in which a text is looked for
TEXT = 200  # characters of a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Which jobs somebody wants; None: whatever it is."""

    state: State | None = None
    kind: str | None = None
    batch: int | None = None
    code: str | None = None
    checkpoint: str | None = None
    text: str | None = None  # in its key, correlation, note, or the beginning of its payload
    letters: bool = False  # only dead letters that nobody has put away
    fingerprint: str | None = None  # of the failure; of dead letters alone

    def __post_init__(self) -> None:
        if self.fingerprint is not None and not self.letters:
            raise BadInput(say("only dead letters have a fingerprint"))
        if self.text is not None and not 0 < len(self.text) <= TEXT:
            raise BadInput(say("a text to look for has 1 to {most} characters", most=TEXT))

    @property
    def by_its_own_way(self) -> bool:
        """Whether every job on the way is one that is wanted."""
        beside = (self.code, self.checkpoint, self.text, self.fingerprint)
        filtered = self.letters and (self.kind, self.batch) != (None, None)
        return all(each is None for each in beside) and not filtered


class Page(NamedTuple):
    """What was found, and before which id the next look begins; None: nothing is left."""

    jobs: list[Job]
    next: int | None


class Count(NamedTuple):
    """How many there are; not `exact`: at least so many."""

    n: int
    exact: bool


class _Look(NamedTuple):
    ids: list[int]
    next: int | None


def search_jobs(
    tx: Transaction, search: Search, *, before: int | None = None, limit: int = 50
) -> Page:
    """Newest first, a page at a time."""
    look = search_ids(tx, search, before=before, limit=checked(limit, "jobs"))
    return Page(tx.all(SQL.jobs_by_id, into=Job, ids=json.dumps(look.ids)), look.next)


def search_ids(
    tx: Transaction, search: Search, *, before: int | None, limit: int, look: int = LOOK
) -> _Look:
    """The ids alone."""
    if search.by_its_own_way:
        found = _candidates(tx, search, before, limit + 1)
        return _Look(found[:limit], found[limit - 1] if len(found) > limit else None)
    met = _candidates(tx, search, before, look)
    found = _matching(tx, search, met)
    if len(found) > limit:
        return _Look(found[:limit], found[limit - 1])
    return _Look(found, met[-1] if len(met) == look else None)


def count_search(tx: Transaction, search: Search, *, most: int = COUNTED) -> Count:
    """How many there are, looking at so many at most."""
    if search.by_its_own_way and not search.letters:
        return Count(_counted(tx, search), exact=True)
    n, seen, before, look = 0, 0, None, min(LOOK, most)
    while seen < most:
        found = search_ids(tx, search, before=before, limit=look, look=look)
        n, seen, before = n + len(found.ids), seen + look, found.next
        if before is None:
            return Count(n, exact=True)
    return Count(n, exact=False)


def _counted(tx: Transaction, search: Search) -> int:
    return sum(
        n
        for kind, states in count_kinds(tx, search.batch).items()
        for state, n in states.items()
        if search.kind in (None, kind) and search.state in (None, state)
    )


def _candidates(tx: Transaction, search: Search, before: int | None, limit: int) -> list[int]:
    if search.letters and (search.kind, search.batch) == (None, None):
        return tx.all(SQL.list_dead_ids, into=int, before=before, limit=limit)
    return ids_of(
        tx,
        state=State.DEAD if search.letters else search.state,
        kind=search.kind,
        batch=search.batch,
        before=before,
        limit=limit,
    )


def _matching(tx: Transaction, search: Search, ids: Sequence[int]) -> list[int]:
    if not ids:
        return []
    found = tx.all(
        SQL.match_jobs,
        into=int,
        ids=as_keys(ids),
        state=search.state,
        kind=search.kind,
        batch=search.batch,
        code=search.code,
        checkpoint=search.checkpoint,
        sought=search.text,
        letters=int(search.letters),
        within=WITHIN,
        limit=len(ids),
    )
    if search.fingerprint is None:
        return found
    causes = dead_causes(tx, found)
    return [each.job for each in causes if each.fingerprint == search.fingerprint]


# — dead letters that died of the same —


@dataclass(frozen=True, slots=True)
class Cause:
    """Why one job is dead."""

    job: int
    kind: str
    code: str | None
    message: str
    ended_at: datetime | None
    details: dict[str, Any]  # all that its last burial said

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.code, self.message)


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters with the same code and, but for names and numbers, the same message."""

    code: str | None
    fingerprint: str
    shape: str  # of the message
    jobs: int
    kinds: list[str]
    newest: Cause
    oldest: int  # a job


class DeadGroups(NamedTuple):
    """The groups, the largest first; not `all`: older dead letters were not looked at."""

    groups: list[DeadGroup]
    looked_at: int
    all: bool


def dead_groups(tx: Transaction, search: Search, *, look: int = LOOK) -> DeadGroups:
    """Of what the newest dead letters died."""
    met = _candidates(tx, search, None, look)
    found = met if search.by_its_own_way else _matching(tx, search, met)
    alike: dict[str, list[Cause]] = {}
    for cause in dead_causes(tx, found):
        alike.setdefault(cause.fingerprint, []).append(cause)
    groups = sorted((_group(name, causes) for name, causes in alike.items()), key=_largest)
    return DeadGroups(groups, len(met), all=len(met) < look)


def dead_causes(tx: Transaction, ids: Iterable[int]) -> list[Cause]:
    """Newest first."""
    wanted = list(ids)
    return (
        [_cause(row) for row in tx.all(SQL.dead_causes, ids=as_keys(wanted))] if wanted else []
    )


def _cause(row: Row) -> Cause:
    job, kind, code, ended_at, details = row
    told = decode(details) if details is not None else {}
    known = told if isinstance(told, dict) else {}
    return Cause(job, kind, code, str(known.get("message") or ""), moment(ended_at), known)


def _group(name: str, causes: Sequence[Cause]) -> DeadGroup:
    newest, oldest = causes[0], causes[-1]
    return DeadGroup(
        code=newest.code,
        fingerprint=name,
        shape=shape(newest.message),
        jobs=len(causes),
        kinds=sorted({each.kind for each in causes}),
        newest=newest,
        oldest=oldest.job,
    )


def _largest(group: DeadGroup) -> tuple[int, int]:
    return -group.jobs, -group.newest.job


def as_keys(ids: Iterable[int]) -> str:
    """An object whose keys are the ids: both databases read those the same way."""
    return json.dumps(dict.fromkeys(map(str, ids), 1))
