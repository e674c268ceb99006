"""How far a batch is, for every verb that waits for one or shows one."""

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from retoma.console.exits import Exit, Stop
from retoma.console.kit import ask, clean, console, format_counts, print_json
from retoma.engine.ops.batches import LOOK, Batch, Progress
from retoma.engine.ports import Clock
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.services.batches import seen_of
from retoma.words import say, speak


def watch(database: str | None, as_json: bool, id_: int) -> None:
    """Show how far a batch is until it ends. Raises Stop where a job of it is dead."""
    left = say("batch {id} goes on without being watched", id=id_)
    batch, progress = ask(
        database, lambda app: _watched(app, id_, quiet=as_json), interrupted=left
    )
    if as_json:
        print_json(seen_of(batch, progress).document)
    else:
        print(
            speak(
                "batch {id} has ended: {states}",
                id=batch.id,
                states=format_counts(progress.counts),
            )
        )
    dead = progress.counts.get(State.DEAD, 0)
    if dead:
        raise Stop(
            Exit.FAILED,
            say(
                "{n} jobs are dead; see `retoma dead list --batch {id}`",
                n=dead,
                id=id_,
            ),
        )


async def _watched(app: Retoma, id_: int, *, quiet: bool) -> tuple[Batch, Progress]:
    batch = await app.batches.get(id_)
    progress = await batch.progress()
    out = console()
    columns = (
        TextColumn(clean(batch.name), markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[eta]}", markup=False),
        TextColumn("{task.fields[states]}", markup=False),
    )
    with Bar(*columns, console=out, disable=quiet or not out.is_terminal) as bar:
        task = bar.add_task("", total=progress.total, states="", eta="")
        while not progress.finished:
            await Clock().sleep(LOOK)
            progress = await batch.progress()
            bar.update(
                task,
                completed=progress.ended,
                total=progress.total,
                states=format_counts(progress.counts),
                eta=speak("{left} left", left=format_eta(progress)),
            )
    return batch, progress


def format_eta(progress: Progress) -> str:
    """Return the time until the end, at the recent pace; `?` where it is unknown."""
    return "?" if progress.eta is None else str(progress.eta).partition(".")[0]
