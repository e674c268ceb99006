"""`/api/jobs`: look for jobs, look at one, submit, steer one or many."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from fastapi import Response

from retoma.access import Person, Role
from retoma.codec import decode
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.services import jobs
from retoma.services.jobs import PAGE, AttemptSeen, EvidenceSeen, Explained, Search
from retoma.web.asked import WhichJobs, page_of_jobs
from retoma.web.cursor import Cursor
from retoma.web.files import TEXT_FILE, csv_of, listed_file, text_file
from retoma.web.house import AHouse, AVisit, House
from retoma.web.many import do_to_ids, do_where, standing
from retoma.web.problems import Refusal
from retoma.web.replay import asked, written
from retoma.web.route import router
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import (
    Canceled,
    Done,
    EventShown,
    JobId,
    JobLine,
    JobShown,
    Limit,
    ManyJobs,
    NewJob,
    NextPage,
    Once,
    PageOf,
    Reason,
    Resolve,
    Retry,
    Sha256,
    StepShown,
    event_shown,
    job_shown,
)
from retoma.words import say, tell

routes = router("jobs")

WELL = (State.DONE, State.SKIPPED, State.CANCELED)  # ends that somebody meant
EXPORTED = 10_000  # lines of an export
COLUMNS = (
    *("id", "kind", "state", "reason", "code", "batch", "key", "checkpoint", "generation"),
    *("failures", "created_at", "started_at", "ended_at", "correlation", "note"),
)


@routes.get("/api/jobs")
async def list_jobs(
    _: Viewer,
    house: AHouse,
    search: WhichJobs,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[JobLine]:
    """Newest first. A page may be short, or empty, and still have a next one: what has no index
    is looked for among so many at a time."""
    return await page_of_jobs(house, "jobs", search, cursor, limit)


@routes.get("/api/jobs.csv", response_class=Response, responses=csv_of("jobs"))
async def export_jobs(
    _: Viewer,
    house: AHouse,
    search: WhichJobs,
) -> Response:
    """The newest 10,000 as a table for a spreadsheet."""
    return await listed_file(house, "csv", "jobs", COLUMNS, _newest(house, search))


async def _newest(house: House, search: Search) -> AsyncIterator[Sequence[Job]]:
    before: int | None = None
    for _ in range(EXPORTED // PAGE):
        page = await house.retoma.search(search, before=before, limit=PAGE)
        yield page.jobs
        before = page.next
        if before is None:
            return


@routes.get("/api/jobs/counts")
async def count_jobs(_: Viewer, house: AHouse) -> dict[str, dict[State, int]]:
    """How many jobs of each kind are in each state, exact at this instant."""
    return await jobs.count_jobs(house.retoma)


@routes.post(
    "/api/jobs",
    status_code=201,
    responses={
        200: {"model": JobShown, "description": "It was there already, under its key."},
        201: {"headers": {"Location": {"schema": {"type": "string"}}}},
    },
)
async def submit(
    body: NewJob,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    key: Once = None,
) -> JobShown:
    """Submit a job of a kind whose application allows it; committed when this answers."""
    house.check_may_submit(body.kind)
    was_new: list[bool] = []

    def write(tx: Any) -> Job:
        job: Job = tx.submit(
            body.kind,
            body.payload,
            key=body.key,
            priority=body.priority,
            run_at=body.run_at,
            deadline=body.deadline,
            correlation=visit.correlation,
            traceparent=visit.traceparent,
            actor=who.name,
        )
        was_new[:] = [job.id in tx.new]
        if job.id in tx.new:
            tx.tell("job.submitted", f"job {job.id}", {"kind": job.kind}, actor=who.name)
        return job

    ask = asked(key, who, "submit", body)
    shown, first = await written(house, ask, write, job_shown, JobShown)
    response.headers["Location"] = f"/api/jobs/{shown.id}"
    if not first or was_new == [False]:
        response.status_code = 200
    return shown


# — many at once: before the routes with an id, which would take their names for one —


@routes.post(
    "/api/jobs/orders",
    responses={202: {"model": Done, "description": "They are many: a job of its own does it."}},
)
async def order_jobs(
    body: ManyJobs,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    key: Once = None,
) -> Done:
    """Retry, cancel, resume or skip many jobs: those that are named, or all that are so.

    Ask with `dry_run` first: it says how many. With an Idempotency-Key a job does it, however few.
    """
    command = await house.retoma.bulk.prepare(body.verb, why=body.why, actor=who.name)
    if body.where is None:
        return await do_to_ids(house, command, body.ids or [], dry_run=body.dry_run)
    ask = asked(key, who, "order", body)
    return await do_where(
        house, command, body.where.search(), ask, visit, response, dry_run=body.dry_run
    )


# — one job —


@routes.get("/api/jobs/{job}")
async def show_job(job: JobId, _: Viewer, house: AHouse) -> JobShown:
    """Everything its row tells."""
    return job_shown(await house.retoma.get(job))


@routes.get("/api/jobs/{job}/events")
async def job_events(
    job: JobId,
    who: Viewer,
    house: AHouse,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[EventShown]:
    """Its timeline, the oldest first."""
    await house.retoma.get(job)
    stamp = Cursor("events", job)
    after = stamp.read(cursor, int) or [0]
    found = await house.retoma.events(job, after=after[0], limit=limit + 1)
    shown = [event_shown(each, stacks=_sees_stacks(who)) for each in found[:limit]]
    following = found[limit - 1].seq if len(found) > limit else None
    return PageOf(items=shown, next=stamp.write(following))


@routes.get("/api/jobs/{job}/attempts")
async def job_attempts(job: JobId, _: Viewer, house: AHouse) -> list[AttemptSeen]:
    """Each claim of it and how that ended; the newest 200."""
    await house.retoma.get(job)
    return (await house.retoma.attempts(job))[-200:]


@routes.get("/api/jobs/{job}/steps")
async def job_steps(
    job: JobId, _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[StepShown]:
    """Its steps by name, with what each gave."""
    await house.retoma.get(job)
    stamp = Cursor("steps", job)
    after = tuple(stamp.read(cursor, str, int, str) or ("", 0, ""))
    seen = sorted(
        await house.retoma.steps(job), key=lambda each: (each.name, each.version, each.key)
    )
    left = [each for each in seen if (each.name, each.version, each.key) > after]
    shown = [
        StepShown(
            name=each.name,
            version=each.version,
            key=each.key,
            state=each.state,
            generation=each.generation,
            epoch=each.epoch,
            saved_at=each.saved_at,
            value=None if each.value is None else decode(each.value),
        )
        for each in left[:limit]
    ]
    if len(left) <= limit:
        return PageOf(items=shown)
    last = left[limit - 1]
    return PageOf(items=shown, next=stamp.write(last.name, last.version, last.key))


@routes.get("/api/jobs/{job}/evidence")
async def job_evidence(job: JobId, _: Viewer, house: AHouse) -> list[EvidenceSeen]:
    """What its attempts have attached; the newest 200."""
    return (await house.retoma.evidence.list(job))[-200:]


@routes.get("/api/jobs/{job}/evidence/{sha256}", response_class=Response, responses=TEXT_FILE)
async def evidence_bytes(job: JobId, sha256: Sha256, _: Operator, house: AHouse) -> Response:
    """The bytes of a piece of evidence, as plain text to be saved: never shown as what it is."""
    if sha256 not in {each.sha256 for each in await house.retoma.evidence.list(job)}:
        raise Refusal("not_found", say("job {job} shows no such evidence", job=job))
    return text_file(f"job-{job}-{sha256[:12]}.txt", await house.retoma.evidence.read(sha256))


@routes.get("/api/jobs/{job}/explain")
async def explain(job: JobId, _: Viewer, house: AHouse, visit: AVisit) -> Explained:
    """Why it is not running, in one sentence, and what would change it."""
    found = await jobs.explain_job(house.retoma, job)
    return replace(found, why=tell(found.why, visit.language))


@routes.post("/api/jobs/{job}/retry")
async def retry(
    job: JobId, who: Operator, house: AHouse, body: Retry | None = None
) -> JobShown:
    """The next generation of a job that has ended. One that ended well wants to be confirmed."""
    how = body or Retry()
    found = await house.retoma.get(job)
    if found.state in WELL and not how.confirm:
        raise Refusal(
            "confirmation_needed",
            say(
                "job {job} is {state}: say confirm to run it again", job=job, state=found.state
            ),
            more={"state": found.state},
        )
    async with standing(house, job):
        found = await jobs.retry_job(house.retoma, job, how.fresh, actor=who.name)
    return job_shown(found)


@routes.post("/api/jobs/{job}/cancel")
async def cancel(job: JobId, who: Operator, house: AHouse) -> Canceled:
    """End a job that has not ended. Asked twice it answers the same."""
    async with standing(house, job):
        state = await jobs.cancel_job(house.retoma, job, actor=who.name)
    answer = "canceled" if state is State.CANCELED else "cancel_requested"
    return Canceled(job=job, state=state, answer=answer)


@routes.post("/api/jobs/{job}/resume")
async def resume(job: JobId, who: Operator, house: AHouse) -> JobShown:
    """A parked job goes on."""
    async with standing(house, job):
        return job_shown(await house.retoma.resume(job, actor=who.name))


@routes.post("/api/jobs/{job}/skip")
async def skip(job: JobId, body: Reason, who: Operator, house: AHouse) -> JobShown:
    """End a job without doing it: one that waits, is parked or is dead."""
    async with standing(house, job):
        return job_shown(await house.retoma.skip(job, body.why, actor=who.name))


@routes.post("/api/jobs/{job}/resolve")
async def resolve(job: JobId, body: Resolve, who: Operator, house: AHouse) -> JobShown:
    """Say what became of work that nobody has seen end."""
    async with standing(house, job):
        if body.outcome == "gone":
            return job_shown(await jobs.send_again(house.retoma, job, actor=who.name))
        return job_shown(await house.retoma.remote.adopt(job, body.handle, actor=who.name))


def _sees_stacks(who: Person) -> bool:
    return who.role.allows(Role.OPERATOR)
