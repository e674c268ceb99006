"""`retoma dead`: dead letters, and what a person does with them."""

from typing import Any

from rich.table import Table

from retoma.cli.jobs import jobs_table, say_again
from retoma.console.kit import ACTOR, ask, clean, console, job_document, print_json, table
from retoma.engine.query import Event
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.words import say, speak, tell


def list_(database: str | None, as_json: bool, *, limit: int, **which: Any) -> None:
    async def found(app: Retoma) -> tuple[list[Job], dict[str, int]]:
        return await app.dead(limit=limit, **which), await app.dead_codes(which.get("batch"))

    letters, codes = ask(database, found)
    if as_json:
        print_json([job_document(job) for job in letters])
        return
    out = console()
    if not letters:
        out.print(speak("no dead letters"))
        return
    out.print(jobs_table(letters))
    told = ", ".join(f"{n} {clean(code)}" for code, n in codes.items())
    out.print(speak("dead by code, discarded ones too: {codes}", codes=told))
    if len(letters) == limit:
        out.print(speak("older ones: --before {id}", id=letters[-1].id))


def show(database: str | None, as_json: bool, id_: int) -> None:
    job, why, last = ask(database, lambda app: _letter(app, id_))
    details = last.details if last is not None and isinstance(last.details, dict) else {}
    if as_json:
        print_json({**job_document(job), "why": tell(why), "error": details})
        return
    out = console()
    print(clean(tell(why)))
    out.print(_facts(job))
    stack = str(details.get("stack") or details.get("traceback") or "")
    for line in stack.splitlines():
        print(clean(line))


def retry(database: str | None, as_json: bool, id_: int, *, fresh: bool) -> None:
    async def once_more(app: Retoma) -> Job:
        await _dead(app, id_)
        return await app.retry(id_, fresh=fresh, only_dead=True, actor=ACTOR)

    job = ask(database, once_more)
    if as_json:
        print_json(job_document(job))
    else:
        say_again(job, fresh=fresh)


def discard(database: str | None, as_json: bool, id_: int, *, why: str | None) -> None:
    job = ask(database, lambda app: app.discard(id_, why, actor=ACTOR))
    if as_json:
        print_json(job_document(job))
    else:
        print(speak("job {job} is put away; its history is kept", job=id_))


async def _dead(app: Retoma, id_: int) -> Job:
    job = await app.get(id_)
    if job.state is not State.DEAD:
        raise IllegalMove(say("job {job} is {state}, not dead", job=id_, state=job.state))
    return job


async def _letter(app: Retoma, id_: int) -> tuple[Job, str, Event | None]:
    job = await _dead(app, id_)
    ends = [each for each in await app.events(id_) if each.type is EventType.BURIED]
    return job, await app.explain(id_), ends[-1] if ends else None


def _facts(job: Job) -> Table:
    page = table()
    page.add_column(style="bold")
    page.add_column(overflow="fold")
    for name in ("kind", "batch", "key", "checkpoint", "failures", "generation", "payload"):
        value = job_document(job)[name]
        if value is not None:
            page.add_row(name, clean(value))
    return page
