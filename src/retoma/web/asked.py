"""What the query of an API address may ask for: which jobs, which dead letters, which lines of the audit log."""

from datetime import datetime
from typing import Annotated, cast

from fastapi import Depends, Query

from retoma.access import KeySeen, Role, SessionSeen, Spot
from retoma.access.model import NEWEST
from retoma.engine.rules.states import State
from retoma.services.audit import AuditSearch
from retoma.services.audit import Spot as AuditSpot
from retoma.services.jobs import Search
from retoma.web.cursor import Cursor
from retoma.web.house import House
from retoma.web.sign_in import Viewer
from retoma.web.wire import LARGEST, Instant, JobLine, PageOf, job_line

StateOf = Annotated[State | None, Query(description="Only in this state.")]
KindOf = Annotated[
    str | None, Query(min_length=1, max_length=100, description="Only this kind.")
]
BatchOf = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this batch.")]
CodeOf = Annotated[str | None, Query(min_length=1, max_length=100, description="Only with it.")]
CheckpointOf = Annotated[
    str | None, Query(min_length=1, max_length=200, description="Only those that stand there.")
]
TextOf = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="In its key, correlation, note, or the beginning of its payload.",
    ),
]
FingerprintOf = Annotated[
    str | None, Query(pattern="^[0-9a-f]{12}$", description="Only those that died of this.")
]
ActorOf = Annotated[str | None, Query(min_length=1, max_length=200, description="Who did it.")]
VerbOf = Annotated[
    str | None, Query(min_length=1, max_length=100, description="What, such as `job.again`.")
]
SubjectOf = Annotated[
    str | None, Query(min_length=1, max_length=500, description="To what, such as `job 7`.")
]
TextIn = Annotated[
    str | None,
    Query(min_length=1, max_length=200, description="In the subject or the details."),
]
Since = Annotated[Instant | None, Query(description="Not before this instant.")]
Until = Annotated[Instant | None, Query(description="Before this instant.")]


def _which_jobs(
    state: StateOf = None,
    kind: KindOf = None,
    batch: BatchOf = None,
    code: CodeOf = None,
    checkpoint: CheckpointOf = None,
    text: TextOf = None,
) -> Search:
    return Search(
        state=state, kind=kind, batch=batch, code=code, checkpoint=checkpoint, text=text
    )


def _which_dead(
    kind: KindOf = None,
    batch: BatchOf = None,
    code: CodeOf = None,
    fingerprint: FingerprintOf = None,
    text: TextOf = None,
) -> Search:
    return Search(
        letters=True, kind=kind, batch=batch, code=code, fingerprint=fingerprint, text=text
    )


def _which_events(
    who: Viewer,
    actor: ActorOf = None,
    verb: VerbOf = None,
    subject: SubjectOf = None,
    text: TextIn = None,
    since: Since = None,
    until: Until = None,
) -> AuditSearch:
    """What was done to people, keys and sessions is told to admins."""
    return AuditSearch(
        actor=actor,
        verb=verb,
        subject=subject,
        text=text,
        since=since,
        until=until,
        access=who.role.allows(Role.ADMIN),
    )


WhichJobs = Annotated[Search, Depends(_which_jobs)]
WhichDead = Annotated[Search, Depends(_which_dead)]
WhichEvents = Annotated[AuditSearch, Depends(_which_events)]


async def page_of_jobs(
    house: House, name: str, search: Search, cursor: str | None, limit: int
) -> PageOf[JobLine]:
    """A page of the jobs that were searched for, under the cursors of one list."""
    stamp = Cursor(name, search)
    before = stamp.read(cursor, int)
    page = await house.retoma.search(search, before=before[0] if before else None, limit=limit)
    return PageOf(items=[job_line(each) for each in page.jobs], next=stamp.write(page.next))


def spot(stamp: Cursor, cursor: str | None) -> Spot:
    """Where a page of keys or sessions begins."""
    values = stamp.read_moment(cursor, str)
    return NEWEST if values is None else Spot(*values)


def place(last: KeySeen | SessionSeen) -> tuple[str, str]:
    return cast("datetime", last.created_at).isoformat(), last.id


def audit_spot(stamp: Cursor, cursor: str | None) -> AuditSpot | None:
    """Where a page of the audit log begins."""
    values = stamp.read_moment(cursor, int, int, int)
    return None if values is None else AuditSpot(*values)
