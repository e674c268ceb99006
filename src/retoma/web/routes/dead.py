"""`/api/dead`: what ended badly and still wants somebody's eye."""

from typing import Any

from fastapi import Response

from retoma.access import Role
from retoma.engine.rules.states import State
from retoma.services import dead
from retoma.services.bulk import Verb
from retoma.services.jobs import Search
from retoma.web.asked import BatchOf, CodeOf, KindOf, WhichDead
from retoma.web.cursor import Cursor
from retoma.web.house import AHouse, AVisit
from retoma.web.many import do_to_ids, do_where, standing
from retoma.web.problems import Refusal
from retoma.web.replay import asked
from retoma.web.route import router
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import (
    STACKS,
    DeadLetter,
    DeadLine,
    Done,
    GroupShown,
    GroupsShown,
    JobId,
    JobShown,
    Limit,
    ManyDiscards,
    ManyRetries,
    MaybeReason,
    NextPage,
    Once,
    PageOf,
    Retry,
    job_line,
    job_shown,
)
from retoma.words import say, tell

routes = router("dead letters")

BY_A_JOB: dict[int | str, dict[str, Any]] = {
    202: {"model": Done, "description": "They are many: a job of its own does it."}
}


@routes.get("/api/dead")
async def list_dead(
    _: Viewer,
    house: AHouse,
    search: WhichDead,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[DeadLine]:
    """Dead letters that nobody has discarded, newest first."""
    stamp = Cursor("dead", search)
    before = stamp.read(cursor, int)
    page = await house.retoma.search(search, before=before[0] if before else None, limit=limit)
    causes = await house.retoma.dead.causes([each.id for each in page.jobs])
    shown = [
        DeadLine(
            **job_line(each).model_dump(),
            message=causes[each.id].message,
            fingerprint=causes[each.id].fingerprint,
        )
        for each in page.jobs
    ]
    return PageOf(items=shown, next=stamp.write(page.next))


@routes.get("/api/dead/groups")
async def dead_groups(
    _: Viewer,
    house: AHouse,
    kind: KindOf = None,
    batch: BatchOf = None,
    code: CodeOf = None,
) -> GroupsShown:
    """Of what the newest dead letters died: those with one code and one message together."""
    found = await house.retoma.dead.groups(
        Search(letters=True, kind=kind, batch=batch, code=code)
    )
    groups = [
        GroupShown(
            code=each.code,
            fingerprint=each.fingerprint,
            message=each.shape,
            jobs=each.jobs,
            kinds=each.kinds,
            newest=each.newest.job,
            oldest=each.oldest,
            ended_at=each.newest.ended_at,
        )
        for each in found.groups[:200]
    ]
    return GroupsShown(groups=groups, looked_at=found.looked_at, all=found.all)


@routes.post("/api/dead/retry", responses=BY_A_JOB)
async def retry_many(
    body: ManyRetries,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    key: Once = None,
) -> Done:
    """Try dead letters again: those that are named, all that are so, or a canary of them.

    Ask with `dry_run` first: it says how many. With an Idempotency-Key a job does it, however few.
    """
    command = await house.retoma.bulk.prepare(Verb.RETRY, actor=who.name)
    if body.where is None:
        wanted = sorted(set(body.ids or []), reverse=True)[: body.canary]
        return await do_to_ids(house, command, wanted, dry_run=body.dry_run)
    return await do_where(
        house,
        command,
        body.where.search(),
        asked(key, who, "retry_dead", body),
        visit,
        response,
        dry_run=body.dry_run,
        most=body.canary,
    )


@routes.post("/api/dead/discard", responses=BY_A_JOB)
async def discard_many(
    body: ManyDiscards,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    key: Once = None,
) -> Done:
    """Put dead letters away, their history kept: those that are named, or all that are so."""
    command = await house.retoma.bulk.prepare(Verb.DISCARD, why=body.why, actor=who.name)
    if body.where is None:
        return await do_to_ids(house, command, body.ids or [], dry_run=body.dry_run)
    return await do_where(
        house,
        command,
        body.where.search(),
        asked(key, who, "discard_dead", body),
        visit,
        response,
        dry_run=body.dry_run,
    )


@routes.get("/api/dead/{job}")
async def show_letter(job: JobId, who: Viewer, house: AHouse, visit: AVisit) -> DeadLetter:
    """Why it is dead: the error, what was seen, what to do. Its stack is not for viewers."""
    found = await house.retoma.get(job)
    if found.state is not State.DEAD:
        raise Refusal(
            "not_found", say("job {job} is {state}, not dead", job=job, state=found.state)
        )
    cause = (await house.retoma.dead.causes([job]))[job]
    error = cause.details
    if not who.role.allows(Role.OPERATOR):
        error = {name: value for name, value in error.items() if name not in STACKS}
    return DeadLetter(
        **job_shown(found).model_dump(),
        why=tell(await house.retoma.explain(job), visit.language),
        message=cause.message,
        fingerprint=cause.fingerprint,
        error=error,
        evidence=await house.retoma.evidence.list(job),
    )


@routes.post("/api/dead/{job}/retry")
async def retry_one(
    job: JobId, who: Operator, house: AHouse, body: Retry | None = None
) -> JobShown:
    """A dead job once more, with a fresh budget."""
    fresh = body is not None and body.fresh
    async with standing(house, job, running="illegal_move"):
        return job_shown(await dead.retry_dead(house.retoma, job, fresh, actor=who.name))


@routes.post("/api/dead/{job}/discard")
async def discard_one(
    job: JobId, who: Operator, house: AHouse, body: MaybeReason | None = None
) -> JobShown:
    """Put a dead letter away, its history kept. Asked twice it answers the same."""
    why = None if body is None else body.why
    return job_shown(await dead.discard_dead(house.retoma, job, why=why, actor=who.name))
