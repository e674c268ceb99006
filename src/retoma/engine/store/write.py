"""What a runner writes on a job it holds: every row carries its epoch, every statement the boot."""

import json
from collections.abc import Iterable, Mapping

from retoma.db import Call, Transaction
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Held, StepId
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import State, StepState
from retoma.engine.store.rows import append_event
from retoma.engine.store.verb import SQL, quoted


def saves(boot: str, steps: Iterable[tuple[Held, StepId, str]]) -> Call:
    """Steps in any state, each as `step_fields` makes it, folded by job and epoch."""
    by_job: dict[Held, list[tuple[StepId, str]]] = {}
    for held, step, fields in steps:
        by_job.setdefault(held, []).append((step, fields))
    rows = ",".join(_job_with_steps(held, its) for held, its in by_job.items())
    return Call(SQL.save_steps, {"boot": boot, "rows": f"[{rows}]"})


def settles(boot: str, rows: Iterable[str]) -> Call:
    """Ended claims, each a JSON object as `settle_row` makes it."""
    return Call(SQL.settle_jobs, {"boot": boot, "rows": f"[{','.join(rows)}]"})


def reports(boot: str, rows: Iterable[str]) -> Call:
    """Progress, each a JSON object as `report_row` makes it."""
    return Call(SQL.report_progress, {"boot": boot, "rows": f"[{','.join(rows)}]"})


def step_fields(
    step: StepId,
    value: str | None,
    state: StepState = StepState.SAVED,
    *,
    reused_from: int | None = None,
) -> str:
    """The inside of a JSON object."""
    name, key = quoted(step.name), quoted(step.key)
    told = f'{{"step":{name},"key":{key}}}' if step.key else f'{{"step":{name}}}'
    if reused_from is not None:
        told = f'{told[:-1]},"from":{reused_from}}}'
    # Added, not formatted: that of an enum takes six times as long as that of a text.
    row = f'"name":{name},"version":{step.version},"key":{key},"state":"' + state
    return row + f'","value":{value or "null"},"told":{told}'


def settle_row(held: Held, end: Settlement) -> str:
    """A JSON object; what is None is left out."""
    # Added, not formatted: that of an enum takes six times as long as that of a text.
    row = f'{{"job":{held.job},"epoch":{held.epoch},"event":"' + end.event
    row += '","state":"' + end.state + '"'
    if end.result is not None:
        row += f',"result":{end.result}'
    if end.details is not None:
        row += f',"details":{end.details}'
    if end.after is not None:
        row += f',"after":{end.after}'
    if end.reason is not None:
        row += f',"reason":{json.dumps(end.reason)}'
    if end.code is not None:
        row += f',"code":{json.dumps(end.code)}'
    if end.aside is not None:
        row += f',"aside":{quoted(end.aside)}'
    if end.stopping:
        row += ',"stopping":true'
    return row + "}"


def report_row(held: Held, progress: float | None, note: str | None) -> str:
    return (
        f'{{"job":{held.job},"epoch":{held.epoch},"progress":{json.dumps(progress)},'
        f'"note":{json.dumps(note)}}}'
    )


def saved_already(tx: Transaction, held: Held, step: StepId, state: StepState) -> bool:
    """Whether this very save has happened: asked only after an answer was lost."""
    row = tx.one(
        SQL.saved_already,
        job=held.job,
        epoch=held.epoch,
        name=step.name,
        version=step.version,
        key=step.key,
        state=state,
    )
    return row is not None


def hold_job(tx: Transaction, boot: str, held: Held) -> bool | None:
    """Lock it for this transaction: whether it is still wanted, None where we no longer have it."""
    return tx.one(SQL.hold_job, into=bool, boot=boot, job=held.job, epoch=held.epoch)


def hold_jobs(tx: Transaction, boot: str, held: Iterable[Held]) -> dict[Held, bool]:
    """Lock those that we still have for this transaction: whether each is still wanted."""
    rows = ",".join(f'{{"job":{each.job},"epoch":{each.epoch}}}' for each in held)
    found = tx.all(SQL.hold_jobs, boot=boot, rows=f"[{rows}]")
    return {Held(job, epoch): bool(wanted) for job, epoch, wanted in found}


def save_step(tx: Transaction, boot: str, held: Held, step: StepId, value: str) -> None:
    """Keep a step of a job that is held by this transaction, with its commit."""
    tx.finish(saves(boot, [(held, step, step_fields(step, value))]))


def ended_already(tx: Transaction, held: Held) -> State | None:
    """How this very claim has ended, if it has: asked only after an answer was lost."""
    return tx.one(SQL.ended_already, into=State, job=held.job, epoch=held.epoch)


def count_refused(tx: Transaction, boot: str, kinds: Mapping[str, int]) -> None:
    """Late writes that changed nothing, for the board."""
    for kind, n in kinds.items():
        tx.run(SQL.count_refused, boot=boot, kind=kind, n=n)


def tell_stalled(tx: Transaction, boot: str, held: Held, details: str) -> bool:
    """Put into its timeline where a silent job stands; whether this runner still holds it."""
    seq = tx.one(SQL.hold_for_evidence, into=int, boot=boot, job=held.job, epoch=held.epoch)
    if seq is None:
        return False
    append_event(tx, held.job, seq, EventType.STALLED, boot, details, epoch=held.epoch)
    return True


def _job_with_steps(held: Held, steps: list[tuple[StepId, str]]) -> str:
    (_, first), *others = steps
    more = f',"more":[{",".join(f"{{{fields}}}" for _, fields in others)}]' if others else ""
    last = quoted(steps[-1][0].name)
    return f'{{"job":{held.job},"epoch":{held.epoch},"n":{len(steps)},"last":{last},{first}{more}}}'
