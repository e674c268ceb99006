"""`retoma embeddings embed` and `retoma embeddings search`: a folder becomes documents of a collection, and is found again."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from retoma.apps.embeddings import APP, service
from retoma.apps.embeddings.model import checked_name, metadata_pairs, parse_pairs
from retoma.apps.embeddings.service import FolderAdded
from retoma.apps.embeddings.vectors import Found, Hit, Mode, Question
from retoma.console.applications import ask_in, bar
from retoma.console.exits import Exit, Stop
from retoma.console.kit import ACTOR, clean, console, print_json, table
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.toolkit.tools import Tools
from retoma.words import say, speak

LOOK: Final = 0.3  # seconds between two looks at how far it is


def embed(
    database: str | None,
    as_json: bool,
    folder: Path,
    collection: str,
    *,
    wait: bool,
    metadata: Sequence[str] = (),
) -> None:
    """The end is a failure where a job of it is dead: a script that waits wants to know."""
    name = checked_name(collection)
    if not folder.is_dir():
        raise BadInput(say("{folder} is no folder", folder=clean(folder)))

    pairs = parse_pairs(metadata)
    metadata_pairs(pairs)

    async def add_and_watch(tools: Tools) -> tuple[FolderAdded, dict[State, int]]:
        app = tools.retoma
        with bar(speak("files taken"), quiet=as_json) as report:
            added = await service.add_folder(
                app, name, folder, metadata=pairs, actor=ACTOR, report=report
            )
        ends = await _watch_batches(app, added, quiet=as_json) if wait else {}
        return added, ends

    left = say("what was taken is embedded by runners, without being watched")
    added, ends = ask_in(APP, database, add_and_watch, interrupted=left)
    _print_added(name, added, ends, as_json=as_json, wait=wait)
    dead = ends.get(State.DEAD, 0)
    if dead:
        raise Stop(
            Exit.FAILED,
            say(
                "{n} documents failed; see `retoma dead list --kind embeddings.document`",
                n=dead,
            ),
        )


def search(
    database: str | None,
    as_json: bool,
    text: str,
    collection: str,
    *,
    limit: int,
    mode: str,
    metadata: Sequence[str] = (),
) -> None:
    if mode not in [*Mode]:
        raise BadInput(say("--mode is hybrid or vector, not {mode}", mode=clean(mode)))
    question = Question(
        collection=checked_name(collection),
        text=text,
        most=limit,
        mode=Mode(mode),
        metadata=parse_pairs(metadata),
    )

    async def find(tools: Tools) -> Found:
        return await service.search_collection(tools.retoma, question, actor=ACTOR)

    found = ask_in(APP, database, find)
    if as_json:
        print_json([asdict(each) for each in found.hits])
        return
    if not found.hits:
        print(speak("No results"))
        return
    page = table("score", "document", "at", "text")
    for hit in found.hits:
        page.add_row(
            f"{hit.score:.3f}", clean(hit.name), f"{hit.start}-{hit.end}", _marked(hit)
        )
    console().print(page)


# — within —


async def _watch_batches(app: Retoma, added: FolderAdded, *, quiet: bool) -> dict[State, int]:
    """Wait until these jobs have ended; return how many ended in each state. Run them here where no runner
    is alive."""
    alive = any(each.state == "alive" for each in await app.runners.list())
    here = None if alive else asyncio.ensure_future(app.run(until_idle=True))
    try:
        with bar(speak("documents embedded"), quiet=quiet) as report:
            while True:
                ends, left = await _count_ends(app, added.batches)
                report(sum(ends.values()), added.new)
                if not left:
                    return ends
                await app.clock.sleep(LOOK)
    finally:
        if here is not None:
            app.stop()
            await here


async def _count_ends(app: Retoma, batches: Sequence[int]) -> tuple[dict[State, int], int]:
    """How the jobs of these have ended, and how many still can."""
    ends: dict[State, int] = {}
    left = 0
    for id_ in batches:
        progress = await (await app.batches.get(id_)).progress()
        for state, n in progress.counts.items():
            if state in (State.WAITING, State.RUNNING):
                left += n
            else:
                ends[state] = ends.get(state, 0) + n
    return ends, left


def _print_added(
    name: str, added: FolderAdded, ends: dict[State, int], *, as_json: bool, wait: bool
) -> None:
    if as_json:
        fields: dict[str, Any] = {
            "collection": name,
            "new": added.new,
            "already": added.already,
        }
        fields |= {"refused": [asdict(each) for each in added.flaws], "batches": added.batches}
        print_json(fields | ({"ends": ends} if wait else {}))
        return
    print(
        speak(
            "{name}: {new} documents taken, {already} were there already",
            name=name,
            new=added.new,
            already=added.already,
        )
    )
    for each in added.flaws:
        print(speak("left out: {name} ({code})", name=clean(each.name), code=each.code))
    if wait:
        done = ends.get(State.DONE, 0)
        print(speak("{n} of them are embedded", n=done))


def _marked(hit: Hit) -> Text:
    """Words of the question stand out."""
    text = Text()
    at = 0
    for start, end in hit.spans:
        text.append(clean(hit.text[at:start]))
        text.append(clean(hit.text[start:end]), style="bold")
        at = end
    text.append(clean(hit.text[at:]))
    return text
