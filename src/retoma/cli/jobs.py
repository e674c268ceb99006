"""`retoma jobs`: look at jobs, and steer them."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import (
    ask,
    at,
    cell,
    clean,
    console,
    job_document,
    json_line,
    print_rows,
)
from retoma.console.options import AsJson, Database, Id
from retoma.words import say, speak, tell

if TYPE_CHECKING:
    from retoma.library import Retoma
    from retoma.services.jobs import Event, Job, JobDetails, Pace, State

LOOK = 0.5  # seconds between two looks at a timeline that is followed
VALUE = 60  # characters of a value that a table shows
OF_KIND = "Only jobs of this kind."

LISTED = Rows(
    (
        *(say("id"), say("kind"), say("state"), say("batch"), say("at")),
        *(say("tries"), say("created"), say("ended")),
    ),
    lambda job: (
        *(job.id, job.kind, stands(job), job.batch, job.checkpoint),
        *(job.failures, job.created_at, job.ended_at),
    ),
    none=say("no such jobs"),
    more=lambda last: say("older ones: --before {id}", id=last.id),
)


def stands(job: "Job") -> str:
    because = job.reason or job.code
    return f"{job.state} ({because})" if because else str(job.state)


jobs = Noun("jobs")
jobs.verb(
    "list_jobs",
    "list",
    shows=LISTED,
    takes={"state": "Only jobs in this state.", "kind": OF_KIND},
)


def show_details(found: "JobDetails", _: SimpleNamespace) -> None:
    print_facts(job_document(found.job))
    show_table(
        (say("step"), say("key"), say("state"), say("epoch"), say("saved"), say("value")),
        [
            (
                each.name if each.version == 1 else f"{each.name} v{each.version}",
                *(each.key, each.state, each.epoch, each.saved_at, short(each.value)),
            )
            for each in found.steps
        ],
    )
    show_table(
        (say("epoch"), say("runner"), say("claimed"), say("ended"), say("how")),
        [
            (each.epoch, each.runner, each.claimed_at, each.ended_at, each.ended)
            for each in found.attempts
        ],
    )
    show_table(
        ("#", say("event"), say("epoch"), say("at"), say("by"), say("details")),
        [
            (each.seq, each.type, each.epoch, each.at, each.actor, short(each.details))
            for each in found.events
        ],
    )


def print_facts(facts: dict[str, Any]) -> None:
    from retoma.console.kit import table

    page = table()
    page.add_column(style="bold")
    page.add_column(overflow="fold")
    for name, value in facts.items():
        if value not in (None, "", False):
            page.add_row(name, cell(value))
    console().print(page)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        print()
        print_rows(heads, rows)


def short(value: object) -> str:
    text = "" if value is None else clean(value)
    return text if len(text) <= VALUE else f"{text[: VALUE - 1]}…"


jobs.verb(
    "show_job",
    "show",
    shows=show_details,
    document=lambda found, _: {
        **job_document(found.job),
        "steps": found.steps,
        "attempts": found.attempts,
        "events": found.events,
    },
)
jobs.verb(
    "explain_job",
    "explain",
    shows=lambda found, _: clean(tell(found.why)),
    document=lambda found, given: {"job": given.job, "why": tell(found.why)},
)


def told_again(job: "Job", given: SimpleNamespace) -> str:
    kept = speak("no step is kept") if given.fresh else speak("committed steps are kept")
    return speak(
        "job {job} waits again, generation {generation}; {kept}",
        job=job.id,
        generation=job.generation,
        kept=kept,
    )


def told_canceled(state: "State", given: SimpleNamespace) -> str:
    match state:
        case "running":
            return speak(
                "job {job} is running: its runner was asked, and ends it at its next step",
                job=given.job,
            )
        case "waiting":
            return speak(
                "job {job} ends canceled once its remote work has been stopped", job=given.job
            )
        case _:
            return speak("job {job} is {state}", job=given.job, state=state)


jobs.verb("retry_job", "retry", shows=told_again)
jobs.verb(
    "cancel_job",
    "cancel",
    shows=told_canceled,
    document=lambda state, given: {"job": given.job, "state": state},
)
jobs.verb(
    "send_again",
    "send-again",
    shows=lambda _, given: speak(
        "job {job} waits again, and does anew what it had begun", job=given.job
    ),
)
jobs.verb(
    "adopt_json",
    "adopt",
    shows=lambda _, given: speak(
        "job {job} waits again, and goes on with what you gave it", job=given.job
    ),
    takes={
        "found": Annotated[
            str,
            typer.Argument(metavar="JSON", help="The handle of its remote work, or a value."),
        ]
    },
)


@jobs.typer.command("logs")
def logs(
    id: Id,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """The timeline of a job, a line for each event; with --follow and --json, JSON lines."""
    from retoma.console.kit import print_json
    from retoma.services.jobs import list_events

    if follow:
        left = say("the job goes on without being followed")
        ask(database, lambda app: _follow(app, id, as_json=json), interrupted=left)
        return
    events = ask(database, lambda app: list_events(app, id))
    if json:
        print_json(events)
    for event in () if json else events:
        print(_line(event))


async def _follow(app: "Retoma", job: int, *, as_json: bool) -> None:
    after = 0
    while True:
        found = await app.get(job)  # first: what it was told before it ended is read after
        for event in await app.events(job, after=after):
            print(json_line(event) if as_json else _line(event), flush=True)
            after = event.seq
        if found.ended:
            return
        await app.clock.sleep(LOOK)


def _line(event: "Event") -> str:
    epoch = "" if event.epoch is None else f" e{event.epoch}"
    details = "" if event.details is None else f"  {clean(event.details)}"
    return f"{at(event.at)}  #{event.seq}{epoch} {event.type} {event.actor or ''}{details}".rstrip()


# — all jobs at once —


def show_counts(found: "dict[str, dict[State, int]]", _: SimpleNamespace) -> None:
    from retoma.engine.rules.states import State

    if not found:
        console().print(speak("no jobs"))
        return
    rows = [
        (kind, *(states.get(state, "") for state in State)) for kind, states in found.items()
    ]
    print_rows((say("kind"), *State), rows)


def show_pace(found: "Pace", _: SimpleNamespace) -> None:
    if not found.minutes:
        console().print(speak("nothing moved"))
        return
    print_rows(
        (say("minute"), say("kind"), say("state"), say("jobs")),
        [(each.at, each.kind, each.state, each.jobs) for each in found.minutes],
    )
    show_table(
        (say("kind"), say("done"), say("mean"), "p50", "p95"),
        [
            (
                *(each.kind, each.attempts),
                *(f"{length:.3g} s" for length in (each.mean, each.p50, each.p95)),
            )
            for each in found.durations
        ],
    )


jobs.verb("count_jobs", "counts", shows=show_counts)
jobs.verb(
    "show_funnel",
    "funnel",
    shows=Rows(
        (say("kind"), say("state"), say("checkpoint"), say("jobs"), say("oldest")),
        lambda each: (
            *(each.kind, each.state, each.checkpoint or "—", each.jobs),
            f"{each.oldest:.0f} s",
        ),
        none=say("nothing runs and nothing is parked"),
    ),
    takes={"kind": OF_KIND},
)
jobs.verb(
    "list_stuck",
    "stuck",
    shows=Rows(
        (
            *(say("job"), say("kind"), say("batch"), say("checkpoint")),
            *(say("runner"), say("quiet for"), say("why")),
        ),
        lambda each: (
            *(each.job, each.kind, each.batch, each.checkpoint or "—", each.runner),
            f"{each.quiet:.0f} s",
            speak("its runner's lease is over") if each.orphan else speak("no progress"),
        ),
        none=say("everything that runs moves"),
    ),
    takes={"quiet": "Without progress for so long: 90s, 10m."},
)
jobs.verb(
    "show_pace",
    "pace",
    shows=show_pace,
    takes={"last": "How far back: 15m, 6h.", "kind": OF_KIND},
)
