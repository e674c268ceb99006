"""`/api/stream`: whatever happens to jobs, as it happens; after a break, what was missed first."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Final

from fastapi import Header, Query, Request

from retoma.access import Person, Role
from retoma.web.broadcast import Everything
from retoma.web.house import AHouse, House
from retoma.web.problems import LATER, Refusal
from retoma.web.route import router
from retoma.web.routes.jobs import BatchOf, KindOf
from retoma.web.sign_in import Viewer, cookie_in, cookie_name, identified, key_in
from retoma.web.stream import EventStream
from retoma.web.wire import LARGEST
from retoma.words import Said, say

routes = router("stream")

EVENTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Server-sent events: `hello`, `job`, `audit`, `heartbeat`, `reset`,"
        " `dropped`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}

JobOf = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this job.")]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="The last `id` that was heard: what came since is told first. One that is"
        " not of this database, or too old, is answered by `reset`.",
    ),
]
Last = Annotated[
    str | None, Query(description="The same, for a reader that cannot set the header.")
]


@routes.get("/api/stream", status_code=200, response_class=EventStream, responses=EVENTS)
async def stream(
    who: Viewer,
    house: AHouse,
    request: Request,
    kind: KindOf = None,
    batch: BatchOf = None,
    job: JobOf = None,
    last: Last = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Everything that happens to jobs, live; to an admin who names no filter also what people do.
    It never ends by itself; within 15 s there is a `heartbeat`."""
    check_room(house, who)
    channel = Everything(
        kind=kind,
        batch=batch,
        job=job,
        stacks=who.role.allows(Role.OPERATOR),
        audit=who.role.allows(Role.ADMIN) and (kind, batch, job) == (None, None, None),
    )
    hearing = await house.broadcaster.listen(
        channel,
        last if last_event_id is None else last_event_id,
        still(who, house, request),
        who.name,
    )
    return EventStream(hearing)


def check_room(house: House, who: Person) -> None:
    """Whether one more may listen, of all and of one person."""
    settings, streams = house.settings, house.broadcaster
    if streams.listeners >= settings.streams:
        raise _no_room(
            say("{most} streams are open already; come back later", most=settings.streams)
        )
    if streams.listeners_of(who.name) >= settings.streams_each:
        raise _no_room(
            say("{most} streams of yours are open already", most=settings.streams_each)
        )


def _no_room(why: Said) -> Refusal:
    return Refusal("too_many_requests", why, headers={"Retry-After": str(LATER)})


@dataclass(frozen=True, slots=True)
class Still:
    """Whether the key or the session a stream was opened with is still the same person's, with the
    same role."""

    who: Person
    credential: str  # hashed; the same one is asked about once
    house: House = field(compare=False)
    request: Request = field(compare=False)

    async def __call__(self) -> bool:
        return await identified(self.request, self.house) == self.who


def still(who: Person, house: House, request: Request) -> Still:
    given = key_in(request) or cookie_in(request, cookie_name(house)) or ""
    return Still(who, sha256(given.encode()).hexdigest(), house, request)
