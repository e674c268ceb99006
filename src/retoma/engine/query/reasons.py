"""Why a job is not running: one true sentence, and what would change it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from retoma.codec import decode
from retoma.db import Row, Transaction, moment
from retoma.engine.query.page import SQL
from retoma.engine.query.runners import RunnerSeen, list_runners
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.events import EventType
from retoma.engine.rules.gates import limit_gate, parted
from retoma.engine.rules.job import REMOTE, Job
from retoma.engine.rules.states import DeadReason, ParkReason, State, StepState
from retoma.engine.store import get_job, pauses, verb
from retoma.engine.store.breaker import list_breakers
from retoma.engine.store.budget import get_budget
from retoma.engine.store.pauses import SCOPES, Pause
from retoma.words import Said, say
from retoma.words.recall import recall

BOUND = 1000  # as far as a line is counted
QUIET = timedelta(minutes=10)  # without progress: worth a word


@dataclass(frozen=True, slots=True)
class _Case:
    """A job and what stands around it."""

    tx: Transaction
    job: Job
    turn: int | None
    deadline: datetime | None
    limit_key: str | None
    batch_name: str | None
    paused_at: datetime | None
    now: datetime
    zone: str


@dataclass(frozen=True, slots=True)
class _Move:
    """The last move of a job: when, by whom, with what words."""

    type: EventType
    at: datetime
    actor: str
    details: dict[str, Any]


def explain(tx: Transaction, job: int, zone: str = "UTC") -> Said:
    """Why it is not running, in one sentence, and what would change it. `zone`: whose days and
    months budgets are counted by."""
    found = get_job(tx, job)
    [row] = tx.all(SQL.explain_job, job=job)
    turn, deadline, limit_key, batch_name, paused_at, now = row
    case = _Case(
        tx=tx,
        job=found,
        turn=turn,
        deadline=moment(deadline),
        limit_key=limit_key,
        batch_name=batch_name,
        paused_at=moment(paused_at),
        now=moment(now),
        zone=zone,
    )
    return say("job {job}: {why}", job=job, why=_why(case))


def _why(case: _Case) -> Said:
    match case.job.state:
        case State.RUNNING:
            return _why_running(case)
        case State.WAITING:
            return _why_waiting(case)
        case State.PARKED:
            return _why_parked(case)
        case State.DEAD:
            return _why_dead(case)
        case State.DONE | State.SKIPPED | State.CANCELED:
            return _why_over(case)


# — running —


def _why_running(case: _Case) -> Said:
    job = case.job
    runner = next((each for each in list_runners(case.tx) if each.boot == job.runner), None)
    if runner is None or runner.state in ("lost", "gone"):
        return say("its runner is lost: it is taken back within seconds, by any other runner")
    if runner.expired:
        return say(
            "its runner {runner} is silent since {since} and its lease is over: another runner"
            " takes the job back on its next tick",
            runner=runner.name,
            since=_clock(runner.beat_at),
        )
    if job.cancel_at is not None:
        return say(
            "running; asked to stop at {at}, ends at its next step", at=_clock(job.cancel_at)
        )
    return _how_it_runs(case, runner)


def _how_it_runs(case: _Case, runner: RunnerSeen) -> Said:
    job = case.job
    where = say(" at {checkpoint}", checkpoint=job.checkpoint) if job.checkpoint else say("")
    [[stalled]] = case.tx.all(SQL.last_stall, job=job.id, epoch=job.epoch)
    if stalled is not None:
        return say(
            "stalled{where} on {runner}: no progress, seen at {at}; its runner stops it, or"
            " `cancel` it",
            where=where,
            runner=runner.name,
            at=_clock(moment(stalled)),
        )
    moved = max(each for each in (job.progress_at, job.started_at, job.created_at) if each)
    running = say(
        "running{where} on {runner} since {since}",
        where=where,
        runner=runner.name,
        since=_clock(job.started_at),
    )
    if case.now - moved < QUIET:
        return running
    return say(
        "{running}, without progress for {quiet}",
        running=running,
        quiet=_rounded(case.now - moved),
    )


# — waiting —


def _why_waiting(case: _Case) -> Said:
    job = case.job
    if case.deadline is not None and case.deadline <= case.now:
        return say(
            "its deadline passed at {at}: it is buried as soon as a runner takes it up",
            at=_clock(case.deadline),
        )
    if case.paused_at is not None:
        return _paused(case)
    resting = pauses.holding(case.tx, job.kind, job.queue)
    if resting is not None:
        return _resting(resting)
    if job.aside is not None:
        return _set_aside(case)
    if not job.due and job.run_at is not None and job.run_at > case.now:
        return _not_yet(case, job.run_at)
    living = [each for each in list_runners(case.tx) if each.living]
    knowing = [each for each in living if f"{job.kind}@{job.version}" in each.knows]
    if not knowing:
        return _nobody_knows(job, living)
    troubled = [each for each in knowing if each.trouble]
    if len(troubled) == len(knowing):
        return say(
            "{runner}, which knows its kind, claims nothing: {trouble}",
            runner=troubled[0].name,
            trouble=troubled[0].trouble,
        )
    if job.suspect:
        return say(
            "a suspect: it was on {lost} runners that died without progress; suspects run one at"
            " a time on each runner, and a third loss nearly alone, or a tenth beside others, ends it",
            lost=job.lost,
        )
    # What no claim has met yet would be set aside by the next.
    shut = (_reached(case, key) for key in parted(case.limit_key))
    return next((each for each in shut if each), None) or _in_line(case, knowing)


def _paused(case: _Case) -> Said:
    return say(
        "its batch {batch} ({name}) is paused since {since}: it goes on with"
        " `retoma batches unpause {batch}`",
        batch=case.job.batch,
        name=case.batch_name,
        since=_clock(case.paused_at),
    )


def _resting(pause: Pause) -> Said:
    return say(
        "its {scope} {name} is paused since {since} by {actor}{why}: it goes on with"
        " `retoma pauses resume {verb} {name}`",
        scope=SCOPES[pause.scope],
        name=pause.name,
        since=_clock(pause.since),
        actor=pause.actor,
        why=say(" ({why})", why=pause.why) if pause.why else say(""),
        verb=str(pause.scope),
    )


def _set_aside(case: _Case) -> Said:
    gate = case.job.aside or ""
    sort, _, key = gate.partition(":")
    match sort:
        case "limit":
            why = _reached(case, key)
        case "pool":
            why = _none_free(case, key)
        case "breaker":
            why = _broken(case, key)
        case "budget":
            why = _spent(case, gate)
        case _:
            why = None
    return why or say("set aside by {gate}: it goes on when that opens", gate=gate)


def _none_free(case: _Case, pool: str) -> Said | None:
    """A pool with nothing for this job; None: there is something."""
    if case.tx.one(verb.SQL.get_pool, pool=pool) is None:
        return say(
            "set aside by pool:{pool}: there is no pool of that name; it goes on when there is one"
            " with a thing to give",
            pool=pool,
        )
    [(things, held, off, resting, used_up)] = case.tx.all(SQL.explain_pool, pool=pool)
    if things > held + off + resting + used_up:
        return None
    return say(
        "set aside by pool:{pool}: of its {things} things {held} are held, {off} off, {resting}"
        " resting, {used_up} used up; it goes on when one is free, switched on or added",
        pool=pool,
        things=things,
        held=held,
        off=off,
        resting=resting,
        used_up=used_up,
    )


def _broken(case: _Case, name: str) -> Said | None:
    """A breaker that lets nobody through; None: it is closed, or there is no such breaker."""
    for each in list_breakers(case.tx):
        if each.name == name and each.state != "closed":
            probe = (
                say("one job tries it right now")
                if each.state == "probing"
                else say("one job tries it at {at}", at=_clock(each.probe_at))
            )
            return say(
                "set aside by breaker:{name}, open since {since} ({reason}): {probe}; when that"
                " works, or somebody closes it, all go on",
                name=name,
                since=_clock(each.since),
                reason=each.reason,
                probe=probe,
            )
    return None


def _spent(case: _Case, gate: str) -> Said | None:
    """A budget with nothing left; None: there is something, or no such budget."""
    try:
        seen = get_budget(case.tx, gate, case.zone)
    except NotFound:
        return None
    if not seen.shut:
        return None
    ends = seen.period.until
    return say(
        "set aside by {gate}: {spent} of {budget} are spent; it goes on by itself {when}",
        gate=gate,
        spent=str(seen.spent),
        budget=str(seen.budget.money),
        when=say("when somebody raises the budget (`retoma budgets set`)")
        if ends is None
        else say("at {at}, or when somebody raises the budget", at=_clock(ends)),
    )


def _reached(case: _Case, key: str) -> Said | None:
    """A limit that lets no more run; None: there is room, or no such limit."""
    limit = case.tx.one(SQL.get_limit, key=key)
    if limit is None or limit[1] < limit[0]:
        return None
    cap, used = limit
    return say(
        "set aside by {gate}: {used} of at most {cap} run; it goes on when one of them ends or the"
        " limit is raised",
        gate=limit_gate(key),
        used=used,
        cap=cap,
    )


def _not_yet(case: _Case, run_at: datetime) -> Said:
    job, when = case.job, {"at": _clock(run_at), "left": _rounded(run_at - case.now)}
    move = _last_move(case)
    elsewhere = _at_work_elsewhere(case)
    if elsewhere is not None and job.code is None:
        return say(
            "waits for {work}: asks after it again {at}, in {left}", work=elsewhere, **when
        )
    if move is not None and move.type is EventType.SNOOZED:
        return say("snoozed by its own story: next look {at}, in {left}", **when)
    if job.code is not None:
        return say(
            "backing off after {failures} failed attempts (code {code}): next try {at}, in {left}",
            failures=job.failures,
            code=job.code,
            **when,
        )
    return say("scheduled for {at}, in {left}", **when)


def _at_work_elsewhere(case: _Case) -> Said | None:
    """What of this job may be at work on another machine; None: nothing."""
    for name, _, number, state, handle in case.tx.all(verb.SQL.unknown_steps, job=case.job.id):
        if not name.startswith(REMOTE):
            continue
        which = {"step": name.removeprefix(REMOTE), "number": number}
        if state == StepState.BEGUN:
            return say("remote work {step} (number {number}, not seen to arrive)", **which)
        return say(
            "remote work {step} (number {number}, handle {handle})", **which, handle=handle
        )
    return None


def _nobody_knows(job: Job, living: list[RunnerSeen]) -> Said:
    if not living:
        return say(
            "no runner for {kind} version {version} is alive: start one",
            kind=job.kind,
            version=job.version,
        )
    return say(
        "no runner for {kind} version {version} is alive; {living} runners live, none of them"
        " knows it: start one",
        kind=job.kind,
        version=job.version,
        living=len(living),
    )


def _in_line(case: _Case, knowing: list[RunnerSeen]) -> Said:
    slots, held = sum(each.slots for each in knowing), sum(each.held for each in knowing)
    ahead = _ahead(case)
    if held >= slots:
        return say(
            "waiting its turn; {ahead} before it, and all {slots} slots of the {runners} runners"
            " that know its kind are taken",
            ahead=ahead,
            slots=slots,
            runners=len(knowing),
        )
    return say(
        "waiting its turn; {ahead} before it; {runners} runners know its kind and take it when a"
        " slot is free",
        ahead=ahead,
        runners=len(knowing),
    )


def _ahead(case: _Case) -> Said:
    """Without a place in line yet it is due, and given the first one by the next claim."""
    job = case.job
    if case.turn is None:
        return say("none")
    [[ahead]] = case.tx.all(
        SQL.jobs_before,
        queue=job.queue,
        priority=job.priority,
        turn=case.turn,
        job=job.id,
        bound=BOUND + 1,
    )
    if not ahead:
        return say("none")
    return say("more than {n}", n=BOUND) if ahead > BOUND else say("{n}", n=ahead)


# — resting, and over —


def _why_parked(case: _Case) -> Said:
    if case.job.reason == ParkReason.UNKNOWN_REMOTE:
        unknown = case.tx.one(verb.SQL.unknown_steps, job=case.job.id)
        if unknown is not None:
            return _nobody_saw(case, unknown)
    move = _last_move(case)
    who = case.job.reason if move is None else move.actor
    told = _said_of(move, "why")
    return say(
        "parked ({reason}) by {who}{told}: {advice}; resume or cancel it",
        reason=case.job.reason,
        who=who,
        told=say(" ({why})", why=told) if told else say(""),
        advice=PARKED.get(str(case.job.reason), PARKED[ParkReason.OPERATOR]),
    )


def _nobody_saw(case: _Case, unknown: Row) -> Said:
    """Somebody must say what became of a step; the two ways to say it."""
    name, _, key, _, _ = unknown
    move = _last_move(case)
    step = (
        _at_work_elsewhere(case)
        or (say("step {step} of {key}", step=name, key=key) if key else None)
        or say("step {step}", step=name)
    )
    return say(
        "parked (unknown_remote): nobody has seen the end of {work}{told}; say that it is gone and"
        " may be done again (`retoma jobs send-again {job}`), or what it gave (`retoma jobs adopt"
        " {job} JSON`), or cancel it",
        work=step,
        told=say(" ({why})", why=_said_of(move, "why"))
        if move is not None and "why" in move.details
        else say(""),
        job=case.job.id,
    )


PARKED: dict[str, Said] = {
    ParkReason.OPERATOR: say("it waits for a person"),
    ParkReason.CONFIG: say("put the setting or credential right"),
    ParkReason.BUDGET: say("the budget is spent, raise it"),
    ParkReason.UNKNOWN_REMOTE: say("look whether the other side did the work"),
    ParkReason.UNSTORABLE: say(
        "its result is kept as evidence; change the code that returns it"
    ),
}


def _said_of(move: _Move | None, name: str) -> str:
    """What an event keeps under this name: a sentence of ours, or the words of others."""
    return "" if move is None else recall(str(move.details.get(name) or ""))


def _why_dead(case: _Case) -> Said:
    job, move = case.job, _last_move(case)
    message = _said_of(move, "message")
    return say(
        "dead ({reason}, code {code}){told}: {advice}",
        reason=job.reason,
        code=job.code,
        told=say(": {message}", message=message) if message else say(""),
        advice=_advice(job),
    )


def _advice(job: Job) -> Said:
    if job.discarded_at is not None:
        return say("put away at {at}; `retry` would still run it", at=_clock(job.discarded_at))
    return DEAD.get(str(job.reason), DEAD[DeadReason.PERMANENT])


DEAD: dict[str, Said] = {
    DeadReason.PERMANENT: say(
        "no number of tries helps as it is; put right what it says and `retry`, or `discard` it"
    ),
    DeadReason.EXHAUSTED: say(
        "it failed as often as it may; `retry` gives it a fresh budget and keeps its steps"
    ),
    DeadReason.POISON: say(
        "its runners died while it ran; look at its timeline before you `retry` it"
    ),
    DeadReason.DEADLINE: say(
        "its deadline passed before it ended; `retry` gives it a life without one"
    ),
}


def _why_over(case: _Case) -> Said:
    job, move = case.job, _last_move(case)
    since = _clock(job.ended_at)
    if job.state is State.CANCELED:
        return say(
            "canceled since {since}, by {who}: only `retry` would run it again",
            since=since,
            who="?" if move is None else move.actor,
        )
    if job.state is State.SKIPPED:
        why = _said_of(move, "why")
        return say(
            "skipped since {since} ({why}): only `retry` would run it again",
            since=since,
            why=why,
        )
    return say("done since {since}: only `retry` would run it again", since=since)


def _last_move(case: _Case) -> _Move | None:
    row = case.tx.one(SQL.last_move, job=case.job.id)
    if row is None:
        return None
    kind, when, actor, details = row
    told = decode(details) if details is not None else {}
    return _Move(
        EventType(kind),
        moment(when),
        _name(case, actor),
        told if isinstance(told, dict) else {},
    )


def _name(case: _Case, actor: str | None) -> str:
    """Runners act under their boot; people know them by name."""
    return case.tx.one(SQL.runner_name, into=str, boot=actor) or actor or "?"


def _clock(when: datetime | None) -> str:
    return "?" if when is None else f"{when:%Y-%m-%d %H:%M:%S} UTC"


def _rounded(length: timedelta) -> str:
    """In the largest unit of which there are two."""
    left = max(round(length.total_seconds()), 0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if left >= 2 * size:
            return f"{left // size} {unit}"
    return f"{left} s"
