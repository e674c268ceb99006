"""`/api/stream`: whatever happens to jobs, as it happens; after a break, what was missed first."""

from typing import Annotated, Any, Final

from fastapi import Header, Query, Request

from retoma.access import Role
from retoma.web.asked import BatchOf, KindOf
from retoma.web.broadcast import Everything
from retoma.web.house import AHouse
from retoma.web.route import router
from retoma.web.sign_in import Viewer
from retoma.web.stream import EventStream, check_room, still
from retoma.web.wire import LARGEST

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
