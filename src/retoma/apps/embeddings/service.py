"""The verbs of embeddings, as the API, the pages and the command line call them.

Every verb takes a Retoma in which the application is installed.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, Unpack

from retoma import db
from retoma.apps.embeddings import store
from retoma.apps.embeddings.files import UnreadableFile, list_files, read_folder, text_of
from retoma.apps.embeddings.model import (
    KIND,
    OVERLAP,
    SIZE,
    Flaw,
    JobStatus,
    MetadataValue,
    Model,
    NewDocument,
    Origin,
    checked_name,
    checked_rule,
)
from retoma.apps.embeddings.providers import build_provider
from retoma.apps.embeddings.steps import model_of
from retoma.apps.embeddings.store.chunks import ExportedChunk
from retoma.apps.embeddings.store.collections import Collection, Progress
from retoma.apps.embeddings.store.documents import Added, Document, NamedDocument
from retoma.apps.embeddings.store.jobs import QueueJob, RunnerThroughput, WorkerMetrics
from retoma.apps.embeddings.vectors import Found, Question, Searcher
from retoma.engine.query import Count, Search
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.toolkit.tools import Tools
from retoma.toolkit.uploads import in_thread

T = TypeVar("T")

EXPORTED: Final = (
    500  # chunks of one page of an export, and rows of one group of a Parquet file
)


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of collections, each with its progress; what every runner has done, and the sums of that."""

    collections: Sequence[tuple[Collection, Progress]]
    runners: Sequence[RunnerThroughput]
    metrics: WorkerMetrics


@dataclass(frozen=True, slots=True)
class Reembedding:
    """A new batch. `changed`: whether model or rule of the collection are new; `batch`: None where nothing
    was left to do."""

    changed: bool
    batch: int | None
    jobs: int


@dataclass(slots=True)
class FolderAdded:
    """What became of the files of a folder."""

    new: int = 0
    already: int = 0
    batches: list[int] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class JobOfDocument:
    """A job with its document, None once that is deleted. `cause`: the message a dead letter died with."""

    job: Job
    document: NamedDocument | None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class JobsOfDocuments:
    """A page of jobs, how many there are in all, and before which id the next page begins."""

    jobs: Sequence[JobOfDocument]
    count: Count
    next: int | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """The document's numbers, of all runners and of each by its name."""

    total: WorkerMetrics
    workers: Mapping[str, WorkerMetrics]


# — collections —


async def add_collection(
    retoma: Retoma, name: str, *, size: int = SIZE, overlap: int = OVERLAP, actor: str
) -> Collection:
    """Add a collection for the model that the settings name. Raises IllegalMove where the name is taken."""
    wanted, rule, model = checked_name(name), checked_rule(size, overlap), _model(retoma)
    return await retoma.write(
        lambda tx: store.collections.add(tx, wanted, model, rule, actor=actor)
    )


async def list_collections(retoma: Retoma, *, after: str = "", limit: int) -> list[Collection]:
    """Collections by name."""
    return await _read(
        retoma, lambda tx: store.collections.list_collections(tx, after=after, n=limit)
    )


async def get_collection(retoma: Retoma, name: str) -> tuple[Collection, Progress]:
    def read(tx: db.Transaction) -> tuple[Collection, Progress]:
        found = store.collections.get(tx, name)
        return found, store.collections.progress(tx, found)

    return await _read(retoma, read)


async def get_overview(retoma: Retoma, *, after: str = "", limit: int) -> Overview:
    def read(tx: db.Transaction) -> Overview:
        found = store.collections.list_collections(tx, after=after, n=limit)
        return Overview(
            [(each, store.collections.progress(tx, each)) for each in found],
            store.jobs.list_runner_throughput(tx),
            store.jobs.metrics(tx),
        )

    return await _read(retoma, read)


async def reembed_collection(
    retoma: Retoma,
    name: str,
    *,
    size: int | None = None,
    overlap: int | None = None,
    **origin: Unpack[Origin],
) -> Reembedding:
    """Embed it by the model that the settings name now, cut by `size` and `overlap`, None: as before.

    Documents that are embedded so already are left alone; the others keep their old vectors until they have
    new ones. Called again it continues with what is left.
    """
    model, follow = _model(retoma), _has_webhook(retoma)

    def change(tx: Transaction) -> bool:
        old = store.collections.lock(tx, name).rule
        rule = checked_rule(
            old.size if size is None else size, old.overlap if overlap is None else overlap
        )
        _, changed = store.collections.change(tx, name, model, rule, actor=origin["actor"])
        return changed

    changed = await retoma.write(change)
    batch, jobs = await retoma.write(
        lambda tx: store.collections.reembed(tx, name, follow=follow, **origin)
    )
    return Reembedding(changed, batch, jobs)


async def remove_collection(retoma: Retoma, name: str, *, actor: str) -> None:
    """Delete it with all its documents, some at a time. Their open jobs are canceled."""
    while not await retoma.write(
        lambda tx: store.collections.remove_some(tx, name, actor=actor)
    ):
        pass


async def export_collection(
    retoma: Retoma, name: str
) -> AsyncIterator[Sequence[ExportedChunk]]:
    """Its chunks that have their vectors, page by page. Raises NotFound before the first."""
    collection = await _read(retoma, lambda tx: store.collections.get(tx, name))
    return _export_pages(retoma, collection.id)


async def _export_pages(
    retoma: Retoma, collection: int
) -> AsyncIterator[Sequence[ExportedChunk]]:
    after = (0, -1)
    while True:
        page = partial(store.chunks.export, collection=collection, after=after, n=EXPORTED)
        chunks = await _read(retoma, page)
        yield chunks
        if len(chunks) < EXPORTED:
            return
        after = (chunks[-1].document, chunks[-1].ordinal)


# — documents —


async def add_documents(
    retoma: Retoma,
    collection: str,
    documents: Sequence[NewDocument],
    *,
    size: int = SIZE,
    overlap: int = OVERLAP,
    **origin: Unpack[Origin],
) -> Added:
    """Add documents as one batch; documents with flaws are left out. A collection that is not there is made,
    cut by `size` and `overlap`.

    The same name and text again is the document that is there; the same name with another text replaces it.
    """
    name, rule, model = checked_name(collection), checked_rule(size, overlap), _model(retoma)
    follow = _has_webhook(retoma)
    return await retoma.write(
        lambda tx: store.collections.add_documents(
            tx, name, model, rule, documents, follow=follow, **origin
        )
    )


async def add_file(
    retoma: Retoma,
    collection: str,
    name: str,
    content: bytes,
    *,
    metadata: Mapping[str, MetadataValue] | None = None,
    size: int = SIZE,
    overlap: int = OVERLAP,
    **origin: Unpack[Origin],
) -> Added:
    """Add the text of a PDF, DOCX, HTML or text file as a document; a file that cannot be read is a flaw."""
    try:
        text = await text_of(retoma.isolate, content, name)
    except UnreadableFile as error:
        return Added(None, {}, {}, [Flaw(0, name, error.code, error.why)])
    documents = [NewDocument(name, text, metadata)]
    return await add_documents(
        retoma, collection, documents, size=size, overlap=overlap, **origin
    )


async def add_folder(
    retoma: Retoma,
    collection: str,
    folder: Path,
    *,
    metadata: Mapping[str, MetadataValue] | None = None,
    actor: str,
    report: Callable[[int, int], None],
) -> FolderAdded:
    """Add all files of a folder, at any depth, by their paths in it. `report` is called with how many files
    were read, and how many there are, after every submission."""
    files = await in_thread(list_files, folder)
    added = FolderAdded()
    async for documents, flaws in read_folder(retoma.isolate, folder, files, metadata):
        added.flaws += flaws
        if documents:
            part = await add_documents(retoma, collection, documents, actor=actor)
            added.new += len(part.new)
            added.already += len(part.already)
            added.batches += [] if part.batch is None else [part.batch]
            added.flaws += part.flaws
        report(added.new + added.already + len(added.flaws), len(files))
    return added


async def list_documents(
    retoma: Retoma,
    collection: str,
    *,
    embedded: bool | None = None,
    after: int = 0,
    limit: int,
) -> list[Document]:
    """Documents in the order they came. `embedded`: only those that are, or are not, as the collection wants
    them now."""

    def read(tx: db.Transaction) -> list[Document]:
        found = store.collections.get(tx, collection)
        return store.documents.list_documents(
            tx, found.id, embedded=embedded, after=after, n=limit
        )

    return await _read(retoma, read)


async def get_document(retoma: Retoma, document: int) -> Document:
    return await _read(retoma, lambda tx: store.documents.get(tx, document))


async def remove_document(retoma: Retoma, document: int, *, actor: str) -> None:
    """Delete it. Its job is canceled where it is open."""
    await retoma.write(lambda tx: store.documents.remove(tx, document, actor=actor))


async def search_collection(retoma: Retoma, question: Question, *, actor: str) -> Found:
    """Find what is nearest to a question; `actor` pays for it where it costs money. Raises Transient where
    the provider does not answer."""
    return await _tools(retoma).one(Searcher).find(question, actor=actor)


# — jobs —


async def list_jobs(
    retoma: Retoma,
    *,
    status: JobStatus | None = None,
    worker: str | None = None,
    before: int | None = None,
    limit: int,
) -> list[QueueJob]:
    """The newest first; `worker`: only those that this runner holds."""
    return await _read(
        retoma,
        lambda tx: store.jobs.list_jobs(
            tx, status=status, worker=worker, before=before, n=limit
        ),
    )


async def get_job(retoma: Retoma, job: int) -> QueueJob:
    """Raises NotFound for a job of another kind, too."""
    return await _read(retoma, lambda tx: store.jobs.get(tx, job))


async def list_dead_jobs(
    retoma: Retoma, *, code: str | None = None, before: int | None = None, limit: int
) -> list[tuple[QueueJob, str]]:
    """Dead letters with the message each died with, the newest first."""
    dead = [
        each.id
        for each in await retoma.dead.list(kind=KIND, code=code, before=before, limit=limit)
    ]
    causes = await retoma.dead.causes(dead)
    found = await _read(retoma, lambda tx: store.jobs.these(tx, dead))
    return [(each, causes[each.id].message if each.id in causes else "") for each in found]


def select_dead(code: str | None) -> Search:
    """Dead letters of documents; `code`: only those that died by it."""
    return Search(letters=True, kind=KIND, code=code)


def select_parked(code: str | None) -> Search:
    """Parked jobs of documents; `code`: only those that were parked by it."""
    return Search(state=State.PARKED, kind=KIND, code=code)


async def list_parked(retoma: Retoma, code: str | None = None) -> list[store.jobs.Parked]:
    """List what parked documents wait for, the most first; `code`: only that."""
    found = await _read(retoma, store.jobs.parked_by_code)
    return [each for each in found if code in (None, each.code)]


async def search_jobs(
    retoma: Retoma, search: Search, *, before: int | None = None, limit: int
) -> JobsOfDocuments:
    """A page of jobs with their documents, and the cause of each where dead letters are searched. Letters
    that were discarded or retried meanwhile are left out."""
    page = await retoma.search(search, before=before, limit=limit)
    ids = [job.id for job in page.jobs]
    documents = await _read(retoma, lambda tx: store.documents.of_jobs(tx, ids))
    causes = await retoma.dead.causes(ids) if search.letters else {}
    jobs = [
        JobOfDocument(
            job, documents.get(job.id), causes[job.id].message if search.letters else None
        )
        for job in page.jobs
        if not search.letters or job.id in causes
    ]
    return JobsOfDocuments(jobs, await retoma.count(search), page.next)


async def replay_job(retoma: Retoma, job: int, *, actor: str) -> Job:
    """Retry a dead job in a new generation. Chunks that have their vectors are not embedded again."""
    await get_job(retoma, job)
    return await retoma.retry(job, only_dead=True, actor=actor)


async def resume_job(retoma: Retoma, job: int, *, actor: str) -> Job:
    """Resume a parked job in the same generation, once its cause is removed."""
    await get_job(retoma, job)
    return await retoma.resume(job, actor=actor)


async def get_metrics(retoma: Retoma) -> Metrics:
    return await _read(
        retoma, lambda tx: Metrics(store.jobs.metrics(tx), store.jobs.per_worker(tx))
    )


# — within —


def _tools(retoma: Retoma) -> Tools:
    tools: Tools = retoma.tools["embeddings"]
    return tools


def _model(retoma: Retoma) -> Model:
    """The model that the settings name."""
    return model_of(_tools(retoma).one(build_provider))


def _has_webhook(retoma: Retoma) -> bool:
    return _tools(retoma).settings.embeddings_webhook is not None


async def _read(retoma: Retoma, read: Callable[[db.Transaction], T]) -> T:
    return await (await retoma.database()).read(read)
