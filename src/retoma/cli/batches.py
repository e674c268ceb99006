"""`retoma batches`: how far work that was submitted together is."""

from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from retoma.cli.desk import ask, clean, console, print_json, table
from retoma.cli.exits import Exit, Stop
from retoma.engine import batch as seen
from retoma.engine.batch import LOOK, Batch
from retoma.engine.ports import Clock
from retoma.engine.states import State
from retoma.library import Retoma


def list_(database: str | None, as_json: bool, *, before: int | None, limit: int) -> None:
    async def all_of_them(app: Retoma) -> list[tuple[Batch, seen.Progress]]:
        page = await app.batches(before=before, limit=limit)
        return [(each, await each.progress()) for each in page]

    found = ask(database, all_of_them)
    if as_json:
        print_json([_document(*each) for each in found])
        return
    if not found:
        console().print("no batches")
        return
    page = table("id", "name", "kind", "ended", "of", "states")
    for batch, progress in found:
        ended, total = str(progress.ended), str(progress.total)
        page.add_row(
            str(batch.id), clean(batch.name), batch.kind, ended, total, told(progress.counts)
        )
    console().print(page)


def show(database: str | None, as_json: bool, id_: int) -> None:
    batch, progress = ask(database, lambda app: _look(app, id_))
    if as_json:
        print_json(_document(batch, progress))
    else:
        print(f"batch {batch.id} · {clean(batch.name)} · {batch.kind}")
        print(f"{progress.ended} of {progress.total} ended: {told(progress.counts)}")


def watch(database: str | None, as_json: bool, id_: int) -> None:
    """The end is a failure where a job of it is dead: a script that waits wants to know."""
    batch, progress = ask(database, lambda app: _watched(app, id_, quiet=as_json))
    if as_json:
        print_json(_document(batch, progress))
    else:
        print(f"batch {batch.id} has ended: {told(progress.counts)}")
    dead = progress.counts.get(State.DEAD, 0)
    if dead:
        raise Stop(
            Exit.FAILED,
            f"{dead} jobs are dead; see `retoma jobs list --state dead --batch {id_}`",
        )


def told(counts: dict[State, int]) -> str:
    return " · ".join(f"{n} {state}" for state, n in counts.items()) or "empty"


async def _look(app: Retoma, id_: int) -> tuple[Batch, seen.Progress]:
    batch = await app.batch(id_)
    return batch, await batch.progress()


async def _watched(app: Retoma, id_: int, *, quiet: bool) -> tuple[Batch, seen.Progress]:
    batch, progress = await _look(app, id_)
    out = console()
    columns = (
        TextColumn(clean(batch.name), markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[states]}"),
    )
    with Progress(*columns, console=out, disable=quiet or not out.is_terminal) as bar:
        task = bar.add_task("", total=progress.total, states="")
        while not progress.finished:
            await Clock().sleep(LOOK)
            progress = await batch.progress()
            bar.update(
                task,
                completed=progress.ended,
                total=progress.total,
                states=told(progress.counts),
            )
    return batch, progress


def _document(batch: Batch, progress: seen.Progress) -> dict[str, Any]:
    return {
        "id": batch.id,
        "name": batch.name,
        "kind": batch.kind,
        "total": progress.total,
        "ended": progress.ended,
        "share": progress.share,
        "finished": progress.finished,
        "counts": {str(state): n for state, n in progress.counts.items()},
    }
