"""`retoma batches`: how far work that was submitted together is, and what to do with all of it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from retoma.console.batch_progress import (
    batch_document,
    format_counts,
    format_eta,
    read_progress,
)
from retoma.console.kit import ACTOR, ask, clean, console, print_json, table
from retoma.engine.ops import batches as seen
from retoma.engine.ops.batches import Batch
from retoma.library import Retoma
from retoma.words import Said, say, speak, tell

T = TypeVar("T")


def list_(database: str | None, as_json: bool, *, before: int | None, limit: int) -> None:
    async def all_of_them(app: Retoma) -> list[tuple[Batch, seen.Progress]]:
        page = await app.batches(before=before, limit=limit)
        return [(each, await each.progress()) for each in page]

    found = ask(database, all_of_them)
    if as_json:
        print_json([batch_document(*each) for each in found])
        return
    if not found:
        console().print(speak("no batches"))
        return
    page = table(
        speak("id"),
        speak("name"),
        speak("kind"),
        speak("state"),
        speak("ended"),
        speak("of"),
        speak("jobs"),
    )
    for batch, progress in found:
        ended, total = str(progress.ended), str(progress.total)
        page.add_row(
            str(batch.id),
            clean(batch.name),
            batch.kind,
            progress.state,
            ended,
            total,
            format_counts(progress.counts),
        )
    out = console()
    out.print(page)
    if len(found) == limit:
        out.print(speak("older ones: --before {id}", id=found[-1][0].id))


def show(database: str | None, as_json: bool, id_: int) -> None:
    async def look(app: Retoma) -> tuple[Batch, seen.Progress, dict[str, int]]:
        return *await read_progress(app, id_), await app.dead_codes(id_)

    batch, progress, codes = ask(database, look)
    if as_json:
        print_json({**batch_document(batch, progress), "codes": codes})
        return
    print(
        speak(
            "batch {id} · {name} · {kind} · {state}",
            id=batch.id,
            name=clean(batch.name),
            kind=batch.kind,
            state=progress.state,
        )
    )
    print(
        speak(
            "{ended} of {total} ended: {states}",
            ended=progress.ended,
            total=progress.total,
            states=format_counts(progress.counts),
        )
    )
    if progress.eta is not None and not progress.finished:
        print(speak("at the pace of late it ends in {left}", left=format_eta(progress)))
    if codes:
        told_codes = ", ".join(f"{n} {clean(code)}" for code, n in codes.items())
        print(speak("dead by code: {codes}", codes=told_codes))


# — steering —


def resume(database: str | None, as_json: bool, id_: int) -> None:
    moved = _steer(database, id_, lambda batch: batch.resume(actor=ACTOR))
    said = say("batch {id}: {n} parked jobs go on", id=id_, n=moved)
    _answer(as_json, id_, moved, said)


def retry_failed(database: str | None, as_json: bool, id_: int, codes: list[str]) -> None:
    moved = _steer(database, id_, lambda batch: batch.retry_failed(codes or None, actor=ACTOR))
    said = say(
        "batch {id}: {n} dead jobs wait again; committed steps are kept", id=id_, n=moved
    )
    _answer(as_json, id_, moved, said)


def again(database: str | None, as_json: bool, id_: int, *, fresh: bool) -> None:
    moved = _steer(database, id_, lambda batch: batch.again(fresh=fresh, actor=ACTOR))
    said = say("batch {id}: {n} ended jobs wait again", id=id_, n=moved)
    _answer(as_json, id_, moved, said)


def skip(
    database: str | None,
    as_json: bool,
    id_: int,
    *,
    why: str,
    job: int | None,
    codes: list[str],
) -> None:
    moved = _steer(
        database, id_, lambda batch: batch.skip(why, job=job, codes=codes or None, actor=ACTOR)
    )
    said = say("batch {id}: {n} jobs are skipped", id=id_, n=moved)
    _answer(as_json, id_, moved, said)


def pause(database: str | None, as_json: bool, id_: int) -> None:
    paused = _steer(database, id_, lambda batch: batch.pause(actor=ACTOR))
    if as_json:
        print_json({"batch": id_, "paused": True, "changed": paused})
    elif paused:
        print(speak("batch {id} is paused: what runs ends, nothing more is started", id=id_))
    else:
        print(speak("batch {id} was paused already", id=id_))


def unpause(database: str | None, as_json: bool, id_: int) -> None:
    going = _steer(database, id_, lambda batch: batch.unpause(actor=ACTOR))
    if as_json:
        print_json({"batch": id_, "paused": False, "changed": going})
    elif going:
        print(speak("batch {id} goes on", id=id_))
    else:
        print(speak("batch {id} was not paused", id=id_))


def cancel(database: str | None, as_json: bool, id_: int) -> None:
    moved = _steer(database, id_, lambda batch: batch.cancel(actor=ACTOR))
    said = say(
        "batch {id}: {n} jobs are canceled; those that run end at their next step",
        id=id_,
        n=moved,
    )
    _answer(as_json, id_, moved, said)


def _steer(database: str | None, id_: int, verb: Callable[[Batch], Awaitable[T]]) -> T:
    """A verb goes through a batch in bites: what was done stays done, and may be asked again."""

    async def steered(app: Retoma) -> T:
        return await verb(await app.batch(id_))

    left = say(
        "batch {id}: part of it may be done; the same command goes on with the rest", id=id_
    )
    return ask(database, steered, interrupted=left)


def _answer(as_json: bool, id_: int, moved: int, said: Said) -> None:
    if as_json:
        print_json({"batch": id_, "jobs": moved})
    else:
        print(tell(said))
