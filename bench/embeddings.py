"""Embeddings by our own n-grams: chunks a second, beside a bare loop over the same provider; and search.

The loop is what a script would be: it cuts the same texts, embeds 256 chunks at a time, and stores chunks and
vectors with a commit for each call. It has no jobs, no claims, no dedup, and nobody to take over. Two of them
have half of the texts each; two of our runners share one queue.
"""

import contextlib
import sqlite3
import statistics
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from time import perf_counter
from typing import Any, TypeVar, cast

from bench import ours
from bench.child import Child, Failed, call, together
from bench.compare import Figures, Measure
from bench.memory import told
from bench.ours import Address
from bench.places import Places
from bench.span import seconds_of

T = TypeVar("T")

HERE = "bench.embeddings"
LIMIT = 600.0  # seconds
SEED = 1
SLOTS = 128  # documents at work: what they write in one moment is committed together
WORDS = 700  # of a document: some six chunks
COLLECTION = "bench"
AT_ONCE = 256  # chunks in a call, as ours
A_SUBMISSION = 500  # documents
PER_DOCUMENT = 10  # chunks of a document that is searched
TABLES = (
    "CREATE TABLE chunks (document int, ordinal int, text text, hash text, PRIMARY KEY (document, ordinal))",
    "CREATE TABLE vectors (hash text PRIMARY KEY, vector {blob})",
)
ADD_CHUNK = "INSERT INTO chunks VALUES (?, ?, ?, ?)"
A_DOCUMENT = (
    "INSERT INTO embeddings_documents (id, collection, name, sha256, text, chunks, edition, created_by, created_at,"
    " embedded_at) VALUES (?, ?, ?, '', 'x', ?, 1, 'bench', {long_ago}, {long_ago} + ? * {a_second})"
)
A_CHUNK = (
    "INSERT INTO embeddings_chunks (document, edition, ordinal, begins, ends, text, hash)"
    " VALUES (?, 1, ?, 0, 0, ?, ?)"
)
A_VECTOR = (
    "INSERT INTO embeddings_vectors (hash, model, version, dims, vector, job, made_at)"
    " VALUES (?, ?, ?, 384, ?, 1, {long_ago})"
)
ADD_VECTOR = "INSERT INTO vectors VALUES (?, ?) ON CONFLICT DO NOTHING"


# — in the parent —


def in_house(address: Address, documents: int, processes: int) -> Measure:
    """Chunks a second, from the first claim to the last vector."""

    def measure(places: Places) -> Figures:
        url = address(places)
        call(f"{HERE}:fill", limit=LIMIT, url=url, documents=documents)
        together(processes, f"{HERE}:work", limit=LIMIT, url=url)
        return (chunks_of(documents) / seconds_of(url, documents),)

    return measure


def by_loop(make: str, documents: int, processes: int) -> Measure:
    """The same by so many loops, each with its part."""

    def measure(places: Places) -> Figures:
        url = FLOORS[make](places)
        call(f"{HERE}:make_tables", url=url)
        with contextlib.ExitStack() as stack:
            loops = [
                Child(
                    f"{HERE}:loop", {"url": url, "documents": documents, "part": [n, processes]}
                )
                for n in range(processes)
            ]
            for each in loops:
                stack.enter_context(each).wait_until_ready()
            for each in loops:
                each.go()
            took = [each.answer(LIMIT) for each in loops]
        begun, ended = min(each[0] for each in took), max(each[1] for each in took)
        return (chunks_of(documents) / (ended - begun),)

    return measure


def alone(documents: int) -> Measure:
    """The provider by itself: nothing is read, nothing is kept."""

    def measure(_: Places) -> Figures:
        seconds = call(f"{HERE}:embed_all", limit=LIMIT, documents=documents)
        return (chunks_of(documents) / seconds,)

    return measure


def half_repeats(address: Address, documents: int) -> Measure:
    """Of a corpus in which every text is there twice: texts that the provider was asked for, of a hundred."""

    def measure(places: Places) -> Figures:
        url = address(places)
        call(f"{HERE}:fill", limit=LIMIT, url=url, documents=documents, twice=True)
        asked = call(f"{HERE}:count", limit=LIMIT, url=url)
        return (100 * asked / (2 * chunks_of(documents)),)

    return measure


def search(address: Address, vectors: int, questions: int) -> Measure:
    """Milliseconds of a search, by the median and the slowest of a hundred; MB of the process."""

    def measure(places: Places) -> Figures:
        url = address(places)
        call(f"{HERE}:fill_vectors", limit=LIMIT, url=url, vectors=vectors)
        took = call(f"{HERE}:find", limit=LIMIT, url=url, questions=questions)
        return took["p50"], took["p99"], took["first"], took["megabytes"]

    return measure


FLOORS: Mapping[str, Address] = {
    "postgres": lambda places: places.postgres("floor"),
    "sqlite": lambda places: f"sqlite:///{places.file('floor')}",
}


def texts_of(documents: int) -> Iterator[str]:
    """Paragraphs of words, of which some are said more often than others; the same every time."""
    chance = Random(SEED)
    letters = "aaaeeeiooubcdflmnprstv"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(5_000)]
    often = [1 / place for place in range(1, len(words) + 1)]
    for n in range(documents):
        said = chance.choices(words, often, k=WORDS)
        lines = [" ".join(said[at : at + 70]) for at in range(0, WORDS, 70)]
        yield f"Documento {n}.\n\n" + ".\n\n".join(lines)


def chunks_of(documents: int) -> int:
    return sum(len(cut) for cut in map(_cut, texts_of(documents)))


def _cut(text: str) -> list[Any]:
    from retoma.apps.embeddings.chunks import chunked
    from retoma.apps.embeddings.model import checked_rule

    return chunked(text, checked_rule())


# — ours, in processes of their own —


def fill(url: str, documents: int, twice: bool = False) -> None:
    ours.run(_fill(url, documents, twice))


async def _fill(url: str, documents: int, twice: bool) -> None:
    from retoma.apps.embeddings import store
    from retoma.apps.embeddings.model import Model, NewDocument, checked_rule
    from retoma.apps.embeddings.providers import NGrams

    model = Model(NGrams.model, NGrams.version, NGrams.dims)
    every = [NewDocument(f"{n}.txt", text) for n, text in enumerate(texts_of(documents))]
    if twice:
        every += [NewDocument(f"again/{each.name}", each.text) for each in every]
    async with house(url) as app:
        await app.upgrade()
        made = await app.write(
            lambda tx: store.collections.add(
                tx, COLLECTION, model, checked_rule(), actor="bench"
            )
        )
        for some in _some(every, A_SUBMISSION):
            await app.write(
                lambda tx, some=some: store.documents.add(
                    tx, made.id, COLLECTION, some, actor="bench"
                )
            )


def work(url: str) -> None:
    ours.run(_work(url))


async def _work(url: str) -> None:
    async with house(url) as app:
        await app.run(slots=SLOTS, until_idle=True)


def count(url: str) -> int:
    return ours.run(_count(url))


async def _count(url: str) -> int:
    async with house(url, counted=True) as app:
        await app.run(slots=SLOTS, until_idle=True)
    return COUNTING.texts


@contextlib.asynccontextmanager
async def house(url: str, counted: bool = False) -> AsyncIterator[Any]:
    from retoma import Retoma
    from retoma.apps.embeddings import APP
    from retoma.outbound import Outbound
    from retoma.settings import Settings
    from retoma.toolkit.tools import Tools

    async with Retoma(url) as app, Outbound() as out:
        app.install(
            replace(APP, stories=f"{HERE}:counted", schedules=()) if counted else APP,
            Tools(app, out, settings=Settings(database_url=url)),
        )
        yield app


def counted(tools: Any) -> list[Any]:
    """The kinds of the application, with a provider that counts."""
    from retoma.apps.embeddings.steps import Documents, kinds_of

    return kinds_of(tools, Documents(tools, COUNTING))


class Counting:
    """Our n-grams, and how many texts they were asked for."""

    def __init__(self) -> None:
        self.texts = 0

    def __getattr__(self, name: str) -> Any:
        from retoma.apps.embeddings.providers import NGrams

        return getattr(NGrams, name)

    async def embed(self, texts: Sequence[str], *purpose: Any) -> Any:
        from retoma.apps.embeddings.providers import NGrams

        self.texts += len(texts)
        return await NGrams().embed(texts, *purpose)


COUNTING = Counting()  # of this process


# — the loop —


def make_tables(url: str) -> None:
    with _open(url) as (run, commit):
        blob = "blob" if url.startswith("sqlite:") else "bytea"
        for table in TABLES:
            run(table.format(blob=blob), [()])
        commit()


def loop(url: str, documents: int, part: tuple[int, int]) -> tuple[float, float]:
    return ours.run(_loop(url, documents, *part))


async def _loop(url: str, documents: int, place: int, of: int) -> tuple[float, float]:
    """When it began and when it ended."""
    from retoma.apps.embeddings.chunks import content_hash
    from retoma.apps.embeddings.providers import NGrams

    provider = NGrams()
    by = (provider.model, provider.version, provider.dims)
    texts = [(n, text) for n, text in enumerate(texts_of(documents)) if n % of == place]
    with _open(url) as (run, commit):
        began = perf_counter()
        rows = (
            (n, chunk.ordinal, chunk.text, content_hash(chunk.text, *by))
            for n, text in texts
            for chunk in _cut(text)
        )
        for some in _some(rows, AT_ONCE):
            made = await provider.embed([row[2] for row in some])
            run(ADD_CHUNK, some)
            # In one order, or two loops that say the same text would wait for each other for ever.
            hashes = [row[3] for row in some]
            run(ADD_VECTOR, sorted(zip(hashes, cast("Any", made.items), strict=True)))
            commit()
        return began, perf_counter()


def embed_all(documents: int) -> float:
    return ours.run(_embed_all(documents))


async def _embed_all(documents: int) -> float:
    from retoma.apps.embeddings.providers import NGrams

    chunks = [chunk.text for text in texts_of(documents) for chunk in _cut(text)]
    began = perf_counter()
    for some in _some(chunks, AT_ONCE):
        await NGrams().embed(some)
    return perf_counter() - began


@contextlib.contextmanager
def _open(
    url: str,
) -> Iterator[tuple[Callable[[str, Sequence[Any]], object], Callable[[], None]]]:
    """What runs a statement for many rows, and what commits."""
    if url.startswith("sqlite:"):
        file = url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(file, timeout=60)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")  # as ours
            yield database.executemany, database.commit
    else:
        import psycopg

        with psycopg.connect(url, options="-c search_path=retoma,public") as connection:
            cursor = connection.cursor()
            yield (
                lambda sql, rows: cursor.executemany(sql.replace("?", "%s"), rows),
                connection.commit,
            )


def _some(rows: Iterable[T], n: int) -> Iterator[list[T]]:
    left = iter(rows)
    while some := list(islice(left, n)):
        yield some


# — search, in a process of its own —


def fill_vectors(url: str, vectors: int) -> None:
    ours.run(_fill_vectors(url, vectors))


async def _fill_vectors(url: str, vectors: int) -> None:
    """Chunks of a few words each, and vectors by chance: how near they are says nothing here."""
    import numpy as np

    from retoma.apps.embeddings import store
    from retoma.apps.embeddings.model import Model, checked_rule
    from retoma.apps.embeddings.providers import NGrams

    model = Model(NGrams.model, NGrams.version, NGrams.dims)
    async with house(url) as app:
        await app.upgrade()
        made = await app.write(
            lambda tx: store.collections.add(
                tx, COLLECTION, model, checked_rule(), actor="bench"
            )
        )
    rng = np.random.default_rng(SEED)
    on_sqlite = {"long_ago": "1", "a_second": "1000000"}
    on_postgres = {"long_ago": "timestamptz '2026-01-01'", "a_second": "interval '1 second'"}
    times = on_sqlite if url.startswith("sqlite:") else on_postgres
    with _open(url) as (run, commit):
        for some in _some(range(1, vectors // PER_DOCUMENT + 1), A_SUBMISSION):
            run(
                A_DOCUMENT.format(**times),
                [(each, made.id, f"{each}", PER_DOCUMENT, each) for each in some],
            )
            units = rng.normal(size=(len(some) * PER_DOCUMENT, model.dims)).astype("<f4")
            units /= np.linalg.norm(units, axis=1, keepdims=True)
            places = [(document, n) for document in some for n in range(PER_DOCUMENT)]
            run(A_CHUNK, [(*at, f"texto {at}", f"{at[0]}-{at[1]}") for at in places])
            by = (model.name, model.version)
            rows = zip(places, units, strict=True)
            run(
                A_VECTOR.format(**times),
                [(f"{at[0]}-{at[1]}", *by, row.tobytes()) for at, row in rows],
            )
            commit()


def find(url: str, questions: int) -> dict[str, float]:
    return ours.run(_find(url, questions))


async def _find(url: str, questions: int) -> dict[str, float]:
    from retoma.apps.embeddings.vectors import Question, Searcher

    took = []
    async with house(url) as app:
        searcher = Searcher(app.tools["embeddings"])
        for n in range(questions + 1):
            asked = Question(collection=COLLECTION, text=f"texto número {n} desta busca")
            began = perf_counter()
            found = await searcher.find(asked)
            took.append((perf_counter() - began) * 1000)
            if len(found.hits) != asked.most:
                raise Failed(f"{len(found.hits)} hits")
    first, *rest = took
    cuts = statistics.quantiles(rest, n=100)
    return {"p50": cuts[49], "p99": cuts[98], "first": first, "megabytes": told("VmHWM")}
