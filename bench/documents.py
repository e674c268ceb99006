"""Documents, with a model that answers at once: how many a second, beside the same reading by a bare process pool.

The pool does nothing but read: no limits, no record, nobody to take over. What the house adds is in the same
figures: files out of the database, a claim, five commits and a label for each document, all of them shared
with whatever else is under way, and what a child costs that may be killed without harm. The model is a class in
this file that answers in the same breath: what a wire and a service take is nobody's own work. Processor time is
that of the runner and its children, or of the pool; that of PostgreSQL comes on top, on the same cores.
"""

import asyncio
import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from bench import ours
from bench.child import Failed, call
from bench.compare import Figures, Measure
from bench.memory import told
from bench.ours import Address
from bench.places import Places

HERE = "bench.documents"
LIMIT = 600.0  # seconds
SEED = 1
SLOTS = 100  # as a runner has them
LOOK = 0.1
WARM = 8  # documents that are read before anything is measured
AS_MANY_AS_YOU_LIKE = 1e6


# — in the parent —


def in_house(address: Address, documents: int, pages: int) -> Measure:
    """Documents a second from the first claim to the last label; MB of the runner; ms of processor each."""

    def measure(places: Places) -> Figures:
        with files(documents, pages) as folder:
            made = call(f"{HERE}:classify", limit=LIMIT, url=address(places), folder=folder)
        return _figures(documents, made)

    return measure


def in_children(documents: int, pages: int) -> Measure:
    """The engine's children and their limits by themselves."""
    return _alone("isolate", documents, pages)


def in_pool(documents: int, pages: int) -> Measure:
    """The same reading by a bare process pool."""
    return _alone("pool", documents, pages)


def _alone(how: str, documents: int, pages: int) -> Measure:
    def measure(_: Places) -> Figures:
        with files(documents, pages) as folder:
            made = call(f"{HERE}:{how}", limit=LIMIT, folder=folder)
        return _figures(documents, made)

    return measure


def _figures(documents: int, made: dict[str, float]) -> Figures:
    return documents / made["seconds"], made["megabytes"], 1000 * made["processor"] / documents


@contextmanager
def files(documents: int, pages: int) -> Iterator[str]:
    """In a folder, `WARM` more than are counted. No pages: the sandbox's mix of PDF, DOCX, HTML and text."""
    from retoma.apps.documents.sandbox import Papers, pdf_of
    from retoma.apps.documents.sandbox.pdf import paginated

    papers = Papers(SEED)
    with tempfile.TemporaryDirectory(prefix="retoma-bench-") as folder:
        for n in range(documents + WARM):
            if pages:
                lines = papers.text(n) * pages
                (Path(folder) / f"DOC-{n:05d}.pdf").write_bytes(
                    pdf_of(paginated(lines)[:pages])
                )
            else:
                paper = papers.make(n)
                (Path(folder) / paper.name).write_bytes(paper.content)
        yield folder


# — in a process of its own —


def pool(folder: str) -> dict[str, float]:
    from retoma.engine.isolation.isolate import CHILDREN

    first, rest = _split(folder)
    with multiprocessing.get_context("spawn").Pool(CHILDREN) as readers:
        readers.map(_read, first, chunksize=1)
        watch = Watch()
        for _ in readers.imap_unordered(_read, rest):
            pass
        return watch.told()


def _read(path: str) -> Any:
    from retoma.toolkit.readers.reading import read_file

    return read_file(path, Path(path).name)


def isolate(folder: str) -> dict[str, float]:
    return ours.run(_isolate(folder))


async def _isolate(folder: str) -> dict[str, float]:
    from retoma.apps.documents.contents import SMALL_AT_HAND
    from retoma.apps.documents.steps import PROCESSOR, READING
    from retoma.engine.isolation.isolate import Isolate, Limits
    from retoma.toolkit.readers.reading import MEMORY, read_file

    children, room = Isolate(), asyncio.Semaphore(SMALL_AT_HAND)
    limits = Limits(timeout=READING, cpu=PROCESSOR, memory=MEMORY)

    async def one(path: str) -> None:
        async with room:
            await children.in_child(read_file, (path, Path(path).name), limits=limits)

    first, rest = _split(folder)
    try:
        await asyncio.gather(*(one(each) for each in first))
        watch = Watch()
        await asyncio.gather(*(one(each) for each in rest))
        return watch.told()
    finally:
        children.close()


def classify(url: str, folder: str) -> dict[str, float]:
    return ours.run(_classify(url, folder))


async def _classify(url: str, folder: str) -> dict[str, float]:
    from retoma import Retoma
    from retoma.apps.documents import APP, steps
    from retoma.apps.documents.contents import Contents
    from retoma.apps.documents.intake import Intake
    from retoma.engine.rules.states import State
    from retoma.outbound import Outbound
    from retoma.settings import Settings
    from retoma.toolkit.tools import Tools

    steps.Classifier = Instant  # type: ignore[attr-defined, assignment]
    settings = Settings(database_url=url, openrouter_key="nobody looks at it")
    async with Retoma(url) as app, Outbound() as out:
        app.install(APP, Tools(app, out, settings=settings))
        await app.rates.set(steps.OPENROUTER, AS_MANY_AS_YOU_LIKE)
        taken = await Intake(Contents(app)).paths([Path(folder)])
        run = asyncio.create_task(app.run(slots=SLOTS))
        await _until_finished(await _begun(app, taken.incoming[:WARM]))
        batch = await _begun(app, taken.incoming[WARM:])
        watch = Watch()
        await _until_finished(batch)
        made = watch.told()
        counts = await batch.counts()
        app.stop()
        await run
    if set(counts) != {State.DONE}:
        raise Failed(f"not every document has its label: {counts}")
    return made


class Watch:
    """What has passed since it was made."""

    def __init__(self) -> None:
        self._began = perf_counter()
        self._used = _used()

    def told(self) -> dict[str, float]:
        return {
            "seconds": perf_counter() - self._began,
            "processor": _used() - self._used,
            "megabytes": told("VmHWM"),
        }


def _used() -> float:
    """Seconds of processor, of this process and of those children that live."""
    tick = os.sysconf("SC_CLK_TCK")
    spent = 0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        spent += int(fields[11]) + int(fields[12])
    mine = os.times()
    return mine.user + mine.system + spent / tick


class Instant:
    """A model that answers at once, and without a wire."""

    def __init__(self, *_: Any) -> None: ...

    async def classify(self, text: str, rules: Any, used: Any) -> Any:
        from retoma.apps.documents.clients.openrouter import Answer, Used

        used(Used("instant", len(text) // 4, 10, 0.0))
        return Answer(rules.names[0], 0.9, "porque sim", "instant", len(text) // 4, 10, 0.0)


async def _begun(app: Any, incoming: Sequence[Any]) -> Any:
    from retoma.apps.documents import store
    from retoma.apps.documents.model import Label, ProjectRules
    from retoma.apps.documents.store.executions import NewDocument

    rules = ProjectRules(labels=(Label("petição"), Label("sentença")))
    papers = [NewDocument(each.name, each.name, each.sha256, each.size) for each in incoming]

    def begin(tx: Any) -> int:
        project = store.projects.add_project(tx, f"{len(papers)}", rules, actor="bench")
        return store.executions.add_execution(tx, project, papers, actor="bench")

    return await app.batches.get(await app.write(begin))


async def _until_finished(batch: Any) -> None:
    while not (await batch.progress()).finished:  # noqa: ASYNC110 — it may be another's
        await asyncio.sleep(LOOK)


def _split(folder: str) -> tuple[list[str], list[str]]:
    every = sorted(str(each) for each in Path(folder).iterdir())
    return every[:WARM], every[WARM:]
