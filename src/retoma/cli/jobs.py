"""`retoma jobs`: look at jobs, and steer them."""

import asyncio
from typing import Any

from rich.table import Table

from retoma.cli.desk import (
    ACTOR,
    ask,
    at,
    clean,
    console,
    job_document,
    print_json,
    table,
)
from retoma.engine.insights import AttemptSeen, Event, StepSeen
from retoma.engine.job import Job
from retoma.engine.states import State
from retoma.library import Retoma

VALUE = 60  # characters of a value that a table shows


def list_(database: str | None, as_json: bool, *, limit: int, **which: Any) -> None:
    found = ask(database, lambda app: app.jobs(limit=limit, **which))
    if as_json:
        print_json([job_document(job) for job in found])
        return
    if not found:
        console().print("no such jobs")
        return
    page = table("id", "kind", "state", "batch", "at", "tries", "created", "ended")
    for job in found:
        page.add_row(
            str(job.id),
            job.kind,
            _state(job),
            "" if job.batch is None else str(job.batch),
            clean(job.checkpoint or ""),
            str(job.failures),
            at(job.created_at),
            at(job.ended_at),
        )
    out = console()
    out.print(page)
    if len(found) == limit:
        out.print(f"older ones: --before {found[-1].id}")


def show(database: str | None, as_json: bool, id_: int) -> None:
    async def everything(
        app: Retoma,
    ) -> tuple[Job, list[StepSeen], list[AttemptSeen], list[Event]]:
        job = await app.get(id_)  # first: an unknown id is said, not shown as an empty page
        return (job, *await asyncio.gather(app.steps(id_), app.attempts(id_), app.events(id_)))

    job, steps, attempts, events = ask(database, everything)
    if as_json:
        print_json(
            {
                **job_document(job),
                "steps": steps,
                "attempts": attempts,
                "events": events,
            }
        )
        return
    out = console()
    out.print(_facts(job))
    for page in (_steps(steps), _attempts(attempts), _events(events)):
        if page.row_count:
            out.print()
            out.print(page)


def explain(database: str | None, as_json: bool, id_: int) -> None:
    why = ask(database, lambda app: app.explain(id_))
    if as_json:
        print_json({"job": id_, "why": why})
    else:
        print(clean(why))


def retry(database: str | None, as_json: bool, id_: int, *, fresh: bool) -> None:
    job = ask(database, lambda app: app.retry(id_, fresh=fresh, actor=ACTOR))
    if as_json:
        print_json(job_document(job))
    else:
        kept = "no step is kept" if fresh else "committed steps are kept"
        print(f"job {id_} waits again, generation {job.generation}; {kept}")


def cancel(database: str | None, as_json: bool, id_: int) -> None:
    state = ask(database, lambda app: app.cancel(id_, actor=ACTOR))
    if as_json:
        print_json({"job": id_, "state": state})
    elif state is State.RUNNING:
        print(f"job {id_} is running: its runner was asked, and ends it at its next step")
    else:
        print(f"job {id_} is {state}")


def _state(job: Job) -> str:
    because = job.reason or job.code
    return f"{job.state} ({clean(because)})" if because else str(job.state)


def _facts(job: Job) -> Table:
    page = table()
    page.add_column(style="bold")
    page.add_column(overflow="fold")
    for name, value in job_document(job).items():
        if value not in (None, "", False):
            page.add_row(name, at(value) if hasattr(value, "strftime") else clean(value))
    return page


def _steps(steps: list[StepSeen]) -> Table:
    page = table("step", "key", "state", "epoch", "saved", "value")
    for step in steps:
        name = step.name if step.version == 1 else f"{step.name} v{step.version}"
        page.add_row(
            clean(name),
            clean(step.key),
            step.state,
            str(step.epoch),
            at(step.saved_at),
            _short(step.value),
        )
    return page


def _attempts(attempts: list[AttemptSeen]) -> Table:
    page = table("epoch", "runner", "claimed", "ended", "how")
    for each in attempts:
        page.add_row(
            str(each.epoch), each.runner, at(each.claimed_at), at(each.ended_at), each.ended
        )
    return page


def _events(events: list[Event]) -> Table:
    page = table("#", "event", "epoch", "at", "by", "details")
    for each in events:
        epoch = "" if each.epoch is None else str(each.epoch)
        details = "" if each.details is None else _short(str(each.details))
        page.add_row(str(each.seq), each.type, epoch, at(each.at), each.actor, details)
    return page


def _short(text: str | None) -> str:
    text = clean(text or "")
    return text if len(text) <= VALUE else f"{text[: VALUE - 1]}…"
