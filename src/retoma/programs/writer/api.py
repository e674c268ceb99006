"""The writer over HTTP: `/process`, `/status/{job_id}`, `/health`, as the orchestrator expects them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, FastAPI, Path, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from retoma.codec import decode
from retoma.db import DatabaseError
from retoma.engine.rules.errors import NotFound, Permanent, RetomaError, Transient
from retoma.engine.rules.job import Job
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import State
from retoma.engine.store.rows import job_by_key
from retoma.library import Retoma
from retoma.programs.serving import build_service
from retoma.programs.writer.desk import Desk
from retoma.programs.writer.model import (
    KEY,
    Asked,
    Order,
    Profile,
    Report,
    Status,
    status_of,
)
from retoma.programs.writer.story import GROUP, KIND, TRIES, writer_kind
from retoma.web import Anybody, AVisit, Bound, Face, Operator, Refusal, Viewer, router
from retoma.web.problems import LATER, Flaw
from retoma.words import say

TICK: Final = 1.0  # seconds: what a killed writer left is taken up soon
SLOTS: Final = 4  # requests at a time; they share the way to their targets


LEADING: Final = frozenset(  # headers by which a connection is led: never a request's to say
    {"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"}
)
HeaderName = Annotated[
    str,
    Field(max_length=100, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"),
]
HeaderValue = Annotated[str, Field(max_length=4_000, pattern=r"^[\x20-\x7e]*$")]


class Wire(BaseModel):
    """What nobody reads must not look as if it had been heard."""

    model_config = ConfigDict(extra="forbid")


class ConfigAsked(Wire):
    table: str
    schema_: str = Field(alias="schema")
    operation: str
    conflict_key: str


class SourceAsked(Wire):
    type: Literal["url"]
    url: str = Field(max_length=4_000)
    json_path: str
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict, max_length=20)


class ProcessAsked(Wire):
    job_id: Annotated[str, Field(pattern=f"^{KEY.pattern}$")] | None = None
    config: ConfigAsked
    source: SourceAsked

    def asked(self) -> Asked:
        return Asked(
            table=self.config.table,
            schema=self.config.schema_,
            operation=self.config.operation,
            conflict_key=self.config.conflict_key,
            json_path=self.source.json_path,
        )


class Accepted(BaseModel):
    job_id: str
    status: Status
    created_at: str


class ProgressTold(BaseModel):
    total: int | None
    processed: int
    success_count: int
    failed_count: int


class FailedTold(BaseModel):
    index: int
    data: JsonValue
    error: str


class StatusTold(BaseModel):
    job_id: str
    status: Status
    progress: ProgressTold
    failed_items: list[FailedTold]
    started_at: str | None
    completed_at: str | None
    error_code: str | None = None  # only where the status is failed, as the next
    error: str | None = None


class HealthTold(BaseModel):
    status: Literal["healthy", "unhealthy"]


def build_writer(
    desk: Desk,
    face: Face,
    *,
    api_key: str,
    bound: Bound | None = None,
    retry: Retry = TRIES,
    group: int = GROUP,
) -> FastAPI:
    """The writer as a site: its routes, and the runner that does what they accept."""
    retoma = desk.retoma
    retoma.kinds.add(writer_kind(desk, retry=retry, group=group))
    return build_service(
        "retoma writer",
        retoma,
        face,
        api_key=api_key,
        routers=[_routes(desk, retoma)],
        lives=[lambda: _open(desk)],
        bound=bound,
        name="writer",
        slots=SLOTS,
        tick=TICK,
    )


@asynccontextmanager
async def _open(desk: Desk) -> AsyncIterator[None]:
    await desk.ready()
    try:
        yield
    finally:
        await desk.close()


def _routes(desk: Desk, retoma: Retoma) -> APIRouter:
    routes = router("writer")

    @routes.post("/process")
    async def process(asked: ProcessAsked, who: Operator, visit: AVisit) -> Accepted:
        """Have the items of a source stored, by the profile that the request names."""
        profile = await _profile(desk, asked)
        key = asked.job_id or str(UUID(hex=retoma.ids.new()))
        order = {"profile": profile.name, "url": asked.source.url}
        if asked.source.headers:
            order["headers"] = key
            await desk.put_headers(key, asked.source.headers, actor=who.name)
        made = await retoma.submit(
            KIND,
            order,
            key=key,
            correlation=visit.correlation,
            traceparent=visit.traceparent,
            actor=who.name,
        )
        if made.ended:
            await desk.forget_headers(key)
        status = status_of(made, _done(made)) if made.ended else Status.PROCESSING
        return Accepted(job_id=key, status=status, created_at=_instant(made.created_at) or "")

    @routes.get("/status/{job_id}", response_model_exclude_unset=True)
    async def status(
        job_id: Annotated[str, Path(max_length=200)], _: Viewer, response: Response
    ) -> StatusTold:
        """How far it is: true at this instant."""
        response.headers["Cache-Control"] = "no-store"
        if not KEY.fullmatch(job_id):
            raise NotFound(say("there is no such job"))
        database = await retoma.database()
        found = await database.read(lambda tx: job_by_key(tx, KIND, job_id))
        return await _told(desk, job_id, found)

    @routes.get("/health", dependencies=[Anybody])
    async def health(response: Response) -> HealthTold:
        """Whether work could be done now: our database answers, and every target does."""
        try:
            await retoma.ready()
            await desk.answers()
        except (DatabaseError, RetomaError):
            response.status_code = 503
            response.headers["Retry-After"] = str(LATER)
            return HealthTold(status="unhealthy")
        return HealthTold(status="healthy")

    return routes


async def _profile(desk: Desk, asked: ProcessAsked) -> Profile:
    """The profile that this request means; nothing it names goes any further than here."""
    profile = await desk.find(asked.asked())
    if profile is None:
        raise Refusal(
            "unknown_profile",
            say("no profile has this table, schema, operation, key and path; nothing was done"),
        )
    flaws = []
    if not profile.allows(asked.source.url):
        flaws.append(Flaw("body.source.url", say("is not where this profile's sources are")))
    if LEADING & {name.lower() for name in asked.source.headers}:
        flaws.append(
            Flaw(
                "body.source.headers",
                say("name a header that belongs to the connection, not to a request"),
            )
        )
    if flaws:
        raise Refusal("bad_input", say("a value is not allowed; nothing was changed"), flaws)
    return profile


async def _told(desk: Desk, key: str, job: Job) -> StatusTold:
    report = await _report(desk, job)
    status = status_of(job, report)
    told: dict[str, Any] = {
        "job_id": key,
        "status": status,
        "progress": ProgressTold(
            total=report.total,
            processed=report.processed,
            success_count=report.stored,
            failed_count=report.failed,
        ),
        "failed_items": [
            FailedTold(index=each.index, data=each.data, error=each.error)
            for each in report.items
        ],
        "started_at": _instant(job.started_at),
        "completed_at": _instant(job.ended_at),
    }
    if status is Status.FAILED:
        told["error_code"], told["error"] = await _trouble(desk.retoma, job)
    return StatusTold(**told)


async def _report(desk: Desk, job: Job) -> Report:
    if job.state is State.DONE:
        return _done(job)
    order: Order = decode(job.payload, Order)
    try:
        return await desk.report(await desk.named(order.profile), job.id)
    except NotFound:
        return Report()  # its profile was removed: nobody can ask its target any more
    except Transient:
        raise Refusal(
            "database_away",
            say("the database does not answer; nothing was changed, ask again"),
            headers={"Retry-After": str(LATER)},
        ) from None
    except Permanent:
        return Report()  # a target that cannot be used has stored nothing


def _done(job: Job) -> Report:
    report: Report = decode(job.result or "null", Report) if job.result else Report()
    return report


async def _trouble(retoma: Retoma, job: Job) -> tuple[str, str]:
    """A code for programs, a sentence for people."""
    if job.state is State.DONE:
        return "nothing_stored", "no item could be stored"
    cause = (await retoma.dead.causes([job.id])).get(job.id)
    if cause is None:
        return str(job.state), f"the job is {job.state}"
    return cause.code or str(job.state), cause.message


def _instant(at: datetime | None) -> str | None:
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
