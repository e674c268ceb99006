"""What a person does to a job: compare and set on the state somebody saw."""

from retoma.codec import encode
from retoma.db import Row, Transaction
from retoma.engine.rules.errors import BadInput, IllegalMove
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import HANDLE, REMOTE, Job
from retoma.engine.rules.states import ParkReason, State, StepState
from retoma.engine.store.bulk import Picked, skip_jobs, stop_remote
from retoma.engine.store.rows import append_event, get_job
from retoma.engine.store.verb import SQL
from retoma.words import say


def cancel_job(tx: Transaction, job: int, *, actor: str) -> State:
    """Canceled at once where nobody holds it; else its runner is asked, and rung.

    A job that waits for remote work waits on until a runner has had that stopped.
    """
    for was in (State.WAITING, State.PARKED):
        row = tx.one(SQL.cancel_job, job=job, was=was)
        if row is not None:
            _moved(tx, row, was, State.CANCELED, EventType.CANCELED, actor)
            return State.CANCELED
    if stop_remote(tx, job, actor=actor):
        return State.WAITING
    row = tx.one(SQL.request_cancel, job=job)
    if row is not None:
        seq, epoch, runner = row
        append_event(tx, job, seq, EventType.CANCEL_REQUESTED, actor, None, epoch=epoch)
        tx.ring(f"cancel:{runner}")
        return State.RUNNING
    found = get_job(tx, job)
    if found.state is State.CANCELED or (found.cancel_at is not None and not found.ended):
        return found.state  # asked before: the same answer again
    if not found.ended:
        # It was moved from under our statements, each of which sees its own time.
        return cancel_job(tx, job, actor=actor)
    raise IllegalMove(
        say("job {job} is {state} and cannot be canceled any more", job=job, state=found.state)
    )


def again(
    tx: Transaction, job: int, *, actor: str, fresh: bool = False, only_dead: bool = False
) -> Job:
    """The next generation of an ended job: a fresh budget, and its committed steps kept.

    `only_dead` refuses a job that has ended in any other way.
    """
    found = get_job(tx, job)
    if only_dead and found.state is not State.DEAD:
        raise IllegalMove(
            say(
                "job {job} is {state}: only a dead job is retried here",
                job=job,
                state=found.state,
            )
        )
    if not found.ended:
        raise IllegalMove(
            say(
                "job {job} is {state}: only a job that has ended can be tried again",
                job=job,
                state=found.state,
            )
        )
    if fresh and tx.one(SQL.unknown_steps, job=job) is not None:
        raise IllegalMove(
            say(
                "job {job} has work that nobody has seen end: starting afresh would do it twice;"
                " try it again as it is, or say first that the work is gone",
                job=job,
            )
        )
    row = tx.one(
        SQL.again, job=job, was=found.state, generation=found.generation, fresh=int(fresh)
    )
    if row is None:
        raise IllegalMove(
            say("job {job} was moved by somebody else meanwhile: look again", job=job)
        )
    _moved(tx, row, found.state, State.WAITING, EventType.AGAIN, actor, code=found.code)
    tx.ring(found.queue)
    return get_job(tx, job)


def unpark(tx: Transaction, job: int, *, actor: str) -> Job:
    """A parked job waits its turn again, in the same generation."""
    row = tx.one(SQL.unpark, job=job)
    if row is None:
        raise IllegalMove(
            say("job {job} is {state}, not parked", job=job, state=get_job(tx, job).state)
        )
    _moved(tx, row, State.PARKED, State.WAITING, EventType.UNPARKED, actor)
    found = get_job(tx, job)
    tx.ring(found.queue)
    return found


def send_again(tx: Transaction, job: int, *, actor: str) -> Job:
    """A person says that what a parked job had begun is gone, or never was: it is done again."""
    return _said(tx, job, None, actor)


def adopt(tx: Transaction, job: int, found: str, *, actor: str) -> Job:
    """A person says what a parked job's begun step gave: a handle, or a value. JSON text."""
    return _said(tx, job, found, actor)


def _said(tx: Transaction, job: int, value: str | None, actor: str) -> Job:
    found = get_job(tx, job)
    if (found.state, found.reason) != (State.PARKED, ParkReason.UNKNOWN_REMOTE):
        raise IllegalMove(
            say("job {job} does not wait for somebody to say what became of its work", job=job)
        )
    step = tx.one(SQL.unknown_steps, job=job)
    if step is None:
        raise IllegalMove(say("job {job} has begun nothing that nobody has seen end", job=job))
    name, version, key, was, _ = step
    if value is not None and name.startswith(REMOTE):
        _check_handle(job, value)
    gone = StepState.ENDED if name.startswith(REMOTE) else StepState.FAILED
    state = gone if value is None else StepState.SAVED
    told = encode({"step": name, "key": key, "said_by": actor})
    if (
        tx.one(
            SQL.say_of_step,
            job=job,
            name=name,
            version=version,
            key=key,
            was=was,
            state=state,
            value=told if value is None else value,
        )
        is None
    ):
        raise IllegalMove(
            say("job {job} was moved by somebody else meanwhile: look again", job=job)
        )
    [(seq,)] = tx.all(SQL.next_event, job=job)
    append_event(tx, job, seq, EventType(f"step_{state}"), actor, told)
    return unpark(tx, job, actor=actor)


def _check_handle(job: int, handle: str) -> None:
    if handle == "null" or len(handle) > HANDLE:
        raise BadInput(
            say(
                "job {job}: a handle is a value of at most {most} characters, not {handle}",
                job=job,
                most=HANDLE,
                handle=handle[:80],
            )
        )


def skip_job(tx: Transaction, job: int, why: str, *, actor: str) -> Job:
    """Ended without being done, because a person says so. Skipped already: the same answer again."""
    found = get_job(tx, job)
    if found.state is State.SKIPPED:
        return found
    if found.state not in (State.WAITING, State.PARKED, State.DEAD):
        raise IllegalMove(
            say(
                "job {job} is {state}: only one that waits, is parked or is dead"
                " can be skipped",
                job=job,
                state=found.state,
            )
        )
    picked = [Picked(job, found.code, found.queue, found.kind, found.batch)]
    if not skip_jobs(tx, picked, 0, was=found.state, why=why, actor=actor):
        if (
            found.state is State.WAITING
            and (step := tx.one(SQL.unknown_steps, into=str, job=job)) is not None
        ):
            raise IllegalMove(
                say(
                    "job {job} cannot be skipped: nobody has seen step {step} end. Its next attempt finds"
                    " out; `cancel` stops remote work first",
                    job=job,
                    step=step,
                )
            )
        raise IllegalMove(
            say("job {job} was moved by somebody else meanwhile: look again", job=job)
        )
    return get_job(tx, job)


def discard_job(tx: Transaction, job: int, why: str | None, *, actor: str) -> Job:
    """Put a dead letter away: off the list, still dead. Put away already: the same answer again."""
    seq = tx.one(SQL.discard_job, into=int, job=job)
    if seq is not None:
        details = None if why is None else encode({"why": why})
        append_event(tx, job, seq, EventType.DISCARDED, actor, details)
    found = get_job(tx, job)
    if found.state is not State.DEAD:
        raise IllegalMove(
            say(
                "job {job} is {state}: only a dead letter can be discarded",
                job=job,
                state=found.state,
            )
        )
    return found


def _moved(
    tx: Transaction,
    row: Row,
    was: State,
    to: State,
    event: EventType,
    actor: str,
    *,
    code: str | None = None,
) -> None:
    job, seq, batch, kind = row
    append_event(tx, job, seq, event, actor, None)
    at_stake = code if State.DEAD in (was, to) else None
    tx.run(SQL.tally_move, batch=batch, kind=kind, was=was, to=to, code=at_stake, n=1)
