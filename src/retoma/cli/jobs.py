"""`retoma jobs`: look at jobs, and steer them."""

import asyncio
import json
from typing import Any

from rich.table import Table

from retoma.console.kit import (
    ACTOR,
    ask,
    at,
    clean,
    console,
    job_document,
    json_line,
    print_json,
    table,
)
from retoma.engine.ports import Clock
from retoma.engine.query import AttemptSeen, Event, StepSeen
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.words import say, speak, tell

LOOK = 0.5  # seconds between two looks at a timeline that is followed
VALUE = 60  # characters of a value that a table shows


def list_(database: str | None, as_json: bool, *, limit: int, **which: Any) -> None:
    found = ask(database, lambda app: app.jobs(limit=limit, **which))
    if as_json:
        print_json([job_document(job) for job in found])
        return
    if not found:
        console().print(speak("no such jobs"))
        return
    out = console()
    out.print(jobs_table(found))
    if len(found) == limit:
        out.print(speak("older ones: --before {id}", id=found[-1].id))


def jobs_table(jobs: list[Job]) -> Table:
    page = table(
        speak("id"),
        speak("kind"),
        speak("state"),
        speak("batch"),
        speak("at"),
        speak("tries"),
        speak("created"),
        speak("ended"),
    )
    for job in jobs:
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
    return page


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
        print_json({"job": id_, "why": tell(why)})
    else:
        print(clean(tell(why)))


def retry(database: str | None, as_json: bool, id_: int, *, fresh: bool) -> None:
    job = ask(database, lambda app: app.retry(id_, fresh=fresh, actor=ACTOR))
    if as_json:
        print_json(job_document(job))
    else:
        say_again(job, fresh=fresh)


def say_again(job: Job, *, fresh: bool) -> None:
    kept = speak("no step is kept") if fresh else speak("committed steps are kept")
    print(
        speak(
            "job {job} waits again, generation {generation}; {kept}",
            job=job.id,
            generation=job.generation,
            kept=kept,
        )
    )


def cancel(database: str | None, as_json: bool, id_: int) -> None:
    state = ask(database, lambda app: app.cancel(id_, actor=ACTOR))
    if as_json:
        print_json({"job": id_, "state": state})
    elif state is State.RUNNING:
        print(
            speak(
                "job {job} is running: its runner was asked, and ends it at its next step",
                job=id_,
            )
        )
    elif state is State.WAITING:
        print(speak("job {job} ends canceled once its remote work has been stopped", job=id_))
    else:
        print(speak("job {job} is {state}", job=id_, state=state))


def send_again(database: str | None, as_json: bool, id_: int) -> None:
    job = ask(database, lambda app: app.send_again(id_, actor=ACTOR))
    if as_json:
        print_json(job_document(job))
    else:
        print(speak("job {job} waits again, and does anew what it had begun", job=id_))


def adopt(database: str | None, as_json: bool, id_: int, found: str) -> None:
    try:
        value = json.loads(found)
    except ValueError as error:
        raise BadInput(
            say(
                'what it gave is given as JSON (17, or "w-17" with its quotes): {error}',
                error=error,
            )
        ) from None
    job = ask(database, lambda app: app.adopt(id_, value, actor=ACTOR))
    if as_json:
        print_json(job_document(job))
    else:
        print(speak("job {job} waits again, and goes on with what you gave it", job=id_))


def logs(database: str | None, as_json: bool, id_: int, *, follow: bool) -> None:
    """The timeline; followed, a line (or a JSON line) for each event until the job has ended."""
    if not follow:
        events = ask(database, lambda app: _timeline(app, id_))
        if as_json:
            print_json(events)
        for event in () if as_json else events:
            print(_line(event))
        return
    left = say("the job goes on without being followed")
    ask(database, lambda app: _follow(app, id_, as_json=as_json), interrupted=left)


async def _timeline(app: Retoma, id_: int) -> list[Event]:
    await app.get(id_)  # an unknown id is said, not shown as an empty timeline
    return await app.events(id_)


async def _follow(app: Retoma, id_: int, *, as_json: bool) -> None:
    clock, after = Clock(), 0
    while True:
        job = await app.get(id_)  # first: what it was told before it ended is read after
        for event in await app.events(id_, after=after):
            print(json_line(event) if as_json else _line(event), flush=True)
            after = event.seq
        if job.ended:
            return
        await clock.sleep(LOOK)


def _line(event: Event) -> str:
    epoch = "" if event.epoch is None else f" e{event.epoch}"
    details = "" if event.details is None else f"  {clean(event.details)}"
    return f"{at(event.at)}  #{event.seq}{epoch} {event.type} {event.actor or ''}{details}".rstrip()


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
    page = table(
        speak("step"),
        speak("key"),
        speak("state"),
        speak("epoch"),
        speak("saved"),
        speak("value"),
    )
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
    page = table(
        speak("epoch"), speak("runner"), speak("claimed"), speak("ended"), speak("how")
    )
    for each in attempts:
        page.add_row(
            str(each.epoch), each.runner, at(each.claimed_at), at(each.ended_at), each.ended
        )
    return page


def _events(events: list[Event]) -> Table:
    page = table(
        "#", speak("event"), speak("epoch"), speak("at"), speak("by"), speak("details")
    )
    for each in events:
        epoch = "" if each.epoch is None else str(each.epoch)
        details = "" if each.details is None else _short(str(each.details))
        page.add_row(str(each.seq), each.type, epoch, at(each.at), each.actor or "", details)
    return page


def _short(text: str | None) -> str:
    text = clean(text or "")
    return text if len(text) <= VALUE else f"{text[: VALUE - 1]}…"
