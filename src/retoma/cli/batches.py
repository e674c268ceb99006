"""`retoma batches`: how far jobs that were submitted together are, and what to do with all of them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import clean, format_counts
from retoma.console.options import LARGEST, AsJson, Codes, Database, Id
from retoma.words import Said, say, speak

if TYPE_CHECKING:
    from retoma.services.batches import BatchDetails

WHY = Annotated[str, typer.Option(help="The reason; it stands in each timeline.")]


def show_batch(found: "BatchDetails", _: SimpleNamespace) -> None:
    batch = found.batch
    print(
        speak(
            "batch {id} · {name} · {kind} · {state}",
            id=batch.id,
            name=clean(batch.name),
            kind=batch.kind,
            state=batch.state,
        )
    )
    print(
        speak(
            "{ended} of {total} ended: {states}",
            ended=batch.ended,
            total=batch.total,
            states=format_counts(batch.counts),
        )
    )
    if batch.eta is not None and not batch.finished:
        from datetime import timedelta

        left = str(timedelta(seconds=batch.eta)).partition(".")[0]
        print(speak("at the pace of late it ends in {left}", left=left))
    if found.codes:
        codes = ", ".join(f"{n} {clean(code)}" for code, n in found.codes.items())
        print(speak("dead by code: {codes}", codes=codes))


batches = Noun("batches")
batches.verb(
    "list_batches",
    "list",
    shows=Rows(
        (
            *(say("id"), say("name"), say("kind"), say("state")),
            *(say("ended"), say("of"), say("jobs")),
        ),
        lambda each: (
            *(each.id, each.name, each.kind, each.state),
            *(each.ended, each.total, format_counts(each.counts)),
        ),
        none=say("no batches"),
        more=lambda last: say("older ones: --before {id}", id=last.id),
    ),
    document=lambda found, _: [each.document for each in found],
)
batches.verb(
    "show_batch",
    "show",
    shows=show_batch,
    document=lambda found, _: {**found.batch.document, "codes": found.codes},
)


@batches.typer.command("watch")
def watch(id: Id, database: Database = None, json: AsJson = False) -> None:
    """A progress bar, until every job of it has ended."""
    from retoma.console.batch_progress import watch

    watch(database, json, id)


def left(given: SimpleNamespace) -> Said:
    return say(
        "batch {id}: part of it may be done; the same command goes on with the rest",
        id=given.batch,
    )


def steer(function: str, name: str, said: Callable[..., str], **takes: Any) -> None:
    """A verb goes through a batch in bites: what was done stays done, and may be asked again."""
    batches.verb(
        function,
        name,
        shows=lambda moved, given: said(id=given.batch, n=moved),
        document=lambda moved, given: {"batch": given.batch, "jobs": moved},
        interrupted=left,
        takes=takes,
    )


steer("resume_batch", "resume", lambda **it: speak("batch {id}: {n} parked jobs go on", **it))
steer(
    "retry_failed",
    "retry-failed",
    lambda **it: speak("batch {id}: {n} dead jobs wait again; committed steps are kept", **it),
    code=Codes,
)
steer("rerun_batch", "again", lambda **it: speak("batch {id}: {n} ended jobs wait again", **it))
steer(
    "skip_jobs",
    "skip",
    lambda **it: speak("batch {id}: {n} jobs are skipped", **it),
    why=WHY,
    code=Codes,
    job=Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only this job.")
    ],
)
batches.verb(
    "pause_batch",
    "pause",
    shows=lambda it, _: (
        speak("batch {id} is paused: what runs ends, nothing more is started", id=it.batch)
        if it.changed
        else speak("batch {id} was paused already", id=it.batch)
    ),
    interrupted=left,
)
batches.verb(
    "unpause_batch",
    "unpause",
    shows=lambda it, _: (
        speak("batch {id} goes on", id=it.batch)
        if it.changed
        else speak("batch {id} was not paused", id=it.batch)
    ),
    interrupted=left,
)
steer(
    "cancel_batch",
    "cancel",
    lambda **it: speak(
        "batch {id}: {n} jobs are canceled; those that run end at their next step", **it
    ),
)
