"""`retoma embed` and `retoma search`: a folder becomes documents of a collection, and is found again."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from retoma.apps.embeddings import APP, store
from retoma.apps.embeddings.files import UnreadableFile, text_of
from retoma.apps.embeddings.model import (
    Flaw,
    NewDocument,
    checked_name,
    checked_rule,
    metadata_pairs,
    parse_pairs,
)
from retoma.apps.embeddings.providers import build_provider
from retoma.apps.embeddings.steps import model_of
from retoma.apps.embeddings.store.documents import Added
from retoma.apps.embeddings.vectors import Found, Hit, Mode, Question, Searcher
from retoma.apps.readers.reading import LARGEST
from retoma.apps.tools import Tools
from retoma.apps.uploads import in_thread
from retoma.cli.apps import ask_in, bar
from retoma.cli.desk import ACTOR, clean, console, print_json, table
from retoma.cli.exits import Exit, Stop
from retoma.engine.errors import BadInput
from retoma.engine.isolate import Isolate
from retoma.engine.states import State
from retoma.engine.transaction import Transaction
from retoma.library import Retoma
from retoma.words import say, speak

AT_ONCE: Final = 200  # documents of one submission
WEIGHT: Final = 8 << 20  # bytes of one submission
LOOK: Final = 0.3  # seconds between two looks at how far it is


@dataclass(slots=True)
class Taken:
    """What became of the files of a folder."""

    new: int = 0
    already: int = 0
    batches: list[int] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)

    def add(self, added: Added) -> None:
        self.new += len(added.new)
        self.already += len(added.already)
        self.batches += [] if added.batch is None else [added.batch]
        self.flaws += added.flaws


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

    files = sorted(each for each in folder.rglob("*") if each.is_file())
    pairs = parse_pairs(metadata)
    metadata_pairs(pairs)

    async def go(tools: Tools) -> tuple[Taken, dict[State, int]]:
        taken = await _take(tools, folder, files, name, pairs, quiet=as_json)
        ends = await _watched(tools, taken, quiet=as_json) if wait else {}
        return taken, ends

    left = say("what was taken is embedded by runners, without being watched")
    taken, ends = ask_in(APP, database, go, interrupted=left)
    _tell(name, taken, ends, as_json=as_json, wait=wait)
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
        return await tools.one(Searcher).find(question, actor=ACTOR)

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


async def _take(
    tools: Tools,
    folder: Path,
    files: Sequence[Path],
    name: str,
    metadata: Mapping[str, str],
    *,
    quiet: bool,
) -> Taken:
    follow = tools.settings.embeddings_webhook is not None
    taken, rule, model = Taken(), checked_rule(), model_of(tools.one(build_provider))
    with bar(speak("files taken"), quiet=quiet) as came:
        isolate = tools.retoma.isolate
        async for part in _parts(isolate, folder, files, metadata, taken.flaws):

            def add(tx: Transaction, part: Sequence[NewDocument] = part) -> Added:
                store.collections.find_or_add(tx, name, model, rule, actor=ACTOR)
                there = store.collections.lock(tx, name)
                return store.documents.add(tx, there.id, name, part, actor=ACTOR, follow=follow)

            taken.add(await tools.retoma.write(add))
            came(taken.new + taken.already + len(taken.flaws), len(files))
    return taken


async def _parts(
    isolate: Isolate,
    folder: Path,
    files: Sequence[Path],
    metadata: Mapping[str, str],
    flaws: list[Flaw],
) -> AsyncIterator[list[NewDocument]]:
    """As many as go together; what is no text is left out, and told of."""
    part: list[NewDocument] = []
    weight = 0
    for place, file in enumerate(files):
        name = file.relative_to(folder).as_posix()
        read = await _text_of(isolate, file)
        if isinstance(read, str):
            part.append(NewDocument(name, read, metadata or None))
            weight += len(read)
        else:
            flaws.append(Flaw(place, name, *read))
        if len(part) == AT_ONCE or weight > WEIGHT:
            yield part
            part, weight = [], 0
    if part:
        yield part


async def _text_of(isolate: Isolate, file: Path) -> str | tuple[str, str]:
    """What is in it; or the code and the words of why that is none."""
    try:
        return await text_of(isolate, await in_thread(_content_of, file), file.name)
    except UnreadableFile as error:
        return error.code, str(error.why)
    except OSError as error:
        return "unreadable", str(error.strerror or error)


def _content_of(file: Path) -> bytes:
    """At most a byte more than is taken: a mistaken file may be endless."""
    with file.open("rb") as opened:
        return opened.read(LARGEST + 1)


async def _watched(tools: Tools, taken: Taken, *, quiet: bool) -> dict[State, int]:
    """Where nobody is at work it is done here."""
    app = tools.retoma
    alive = any(each.state == "alive" for each in await app.runners())
    here = None if alive else asyncio.ensure_future(app.run(until_idle=True))
    try:
        with bar(speak("documents embedded"), quiet=quiet) as came:
            while True:
                ends, left = await _counted(app, taken.batches)
                came(sum(ends.values()), taken.new)
                if not left:
                    return ends
                await app.clock.sleep(LOOK)
    finally:
        if here is not None:
            app.stop()
            await here


async def _counted(app: Retoma, batches: Sequence[int]) -> tuple[dict[State, int], int]:
    """How the jobs of these have ended, and how many still can."""
    ends: dict[State, int] = {}
    left = 0
    for id_ in batches:
        progress = await (await app.batch(id_)).progress()
        for state, n in progress.counts.items():
            if state in (State.WAITING, State.RUNNING):
                left += n
            else:
                ends[state] = ends.get(state, 0) + n
    return ends, left


def _tell(
    name: str, taken: Taken, ends: dict[State, int], *, as_json: bool, wait: bool
) -> None:
    if as_json:
        told: dict[str, Any] = {"collection": name, "new": taken.new, "already": taken.already}
        told |= {"refused": [asdict(each) for each in taken.flaws], "batches": taken.batches}
        print_json(told | ({"ends": ends} if wait else {}))
        return
    print(
        speak(
            "{name}: {new} documents taken, {already} were there already",
            name=name,
            new=taken.new,
            already=taken.already,
        )
    )
    for each in taken.flaws:
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
