"""Documents with vectors, written down as the story would leave them, without running it."""

from collections.abc import Mapping

from retoma.apps.embeddings.chunks import Rule, chunked, content_hash
from retoma.apps.embeddings.providers import ItemRefused, Provider
from retoma.db import Database, Transaction, adhoc

RULE = Rule(200, 20)
COLLECTION = adhoc(
    "INSERT INTO embeddings_collections (name, model, version, dims, size, overlap, created_by,"
    " created_at) VALUES (:name, :model, :version, :dims, 200, 20, 'ana', (SELECT clock()))"
    " RETURNING id"
)
DOCUMENT = adhoc(
    "INSERT INTO embeddings_documents (collection, name, sha256, text, chunks, edition, created_by,"
    " created_at, embedded_at) VALUES (:collection, :name, '', :text, :chunks, 1, 'ana',"
    " (SELECT clock()), (SELECT clock())) RETURNING id"
)
CHUNK = adhoc(
    "INSERT INTO embeddings_chunks (document, edition, ordinal, begins, ends, text, hash)"
    " VALUES (:document, 1, :ordinal, :begins, :ends, :text, :hash)"
)
VECTOR = adhoc(
    "INSERT INTO embeddings_vectors (hash, model, version, dims, vector, job, made_at)"
    " VALUES (:hash, :model, :version, :dims, :vector, 1, (SELECT clock()))"
    " ON CONFLICT (hash) DO NOTHING"
)
REMOVE = adhoc(
    "DELETE FROM embeddings_chunks WHERE document = :document;\n\n"
    "DELETE FROM embeddings_documents WHERE id = :document"
)


async def add_collection(database: Database, name: str, provider: Provider) -> int:
    told = {"model": provider.model, "version": provider.version, "dims": provider.dims}
    row = await database.write(lambda tx: tx.one(COLLECTION, name=name, **told), verb="test")
    assert row is not None
    return int(row[0])


async def add_documents(
    database: Database, collection: int, texts: Mapping[str, str], provider: Provider
) -> list[int]:
    """Chunks and vectors of each."""
    cut = {name: chunked(text, RULE) for name, text in texts.items()}
    vectors: dict[str, bytes] = {}
    for chunk in (chunk for chunks in cut.values() for chunk in chunks):
        [item] = (await provider.embed([chunk.text])).items
        assert not isinstance(item, ItemRefused)
        vectors[chunk.text] = item

    def add(tx: Transaction) -> list[int]:
        return [_add(tx, collection, name, texts[name]) for name in texts]

    def _add(tx: Transaction, collection: int, name: str, text: str) -> int:
        row = tx.one(
            DOCUMENT, collection=collection, name=name, text=text, chunks=len(cut[name])
        )
        assert row is not None
        for chunk in cut[name]:
            key = content_hash(chunk.text, provider.model, provider.version, provider.dims)
            tx.run(
                CHUNK,
                document=row[0],
                ordinal=chunk.ordinal,
                begins=chunk.start,
                ends=chunk.end,
                text=chunk.text,
                hash=key,
            )
            tx.run(
                VECTOR,
                hash=key,
                model=provider.model,
                version=provider.version,
                dims=provider.dims,
                vector=vectors[chunk.text],
            )
        return int(row[0])

    return await database.write(add, verb="test")


async def remove_document(database: Database, document: int) -> None:
    await database.write(lambda tx: tx.run(REMOVE, document=document), verb="test")
