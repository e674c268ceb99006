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
from retoma.web.sign_in import Viewer, cookie_name, identified, key_in
from retoma.web.stream import EventStream
from retoma.web.wire import LARGEST
from retoma.words import say

routes = router("stream")

MOST: Final = 500  # streams of one process: each has a file descriptor of its own
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
    check_room(house)
    channel = Everything(
        kind=kind,
        batch=batch,
        job=job,
        stacks=who.role.allows(Role.OPERATOR),
        audit=who.role.allows(Role.ADMIN) and (kind, batch, job) == (None, None, None),
    )
    hearing = await house.broadcaster.listen(
        channel, last if last_event_id is None else last_event_id, still(who, house, request)
    )
    return EventStream(hearing)


def check_room(house: House) -> None:
    """Whether one more may listen."""
    if house.broadcaster.listeners >= MOST:
        raise Refusal(
            "too_many_requests",
            say("{most} streams are open already; come back a little later", most=MOST),
            headers={"Retry-After": str(LATER)},
        )


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
    given = key_in(request) or request.cookies.get(cookie_name(house), "")
    return Still(who, sha256(given.encode()).hexdigest(), house, request)
