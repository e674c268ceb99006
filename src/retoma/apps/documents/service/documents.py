"""Documents of an execution: results, texts and files; retry, skip and review one of them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from retoma.apps.documents import store
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.model import DocumentStatus, ProjectRules
from retoma.apps.documents.service.database import Page, cut_page, read
from retoma.apps.documents.store.documents import Result, Wanted, Which
from retoma.db import Transaction
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.library import Retoma
from retoma.words import say

CHUNK: Final = 1_000  # documents read at a time
HEADINGS: Final = (  # of the results as a table
    *("codigo", "arquivo", "status", "rotulo", "confianca", "revisar", "justificativa"),
    *("modelo", "origem", "tentativas", "erro_codigo", "erro_mensagem", "pulado_motivo"),
    *("rotulo_revisado", "revisado_por", "revisado_em"),
)


@dataclass(frozen=True, slots=True)
class DocumentDetails:
    """A document, the rules by which it is classified, and its text where it was read."""

    result: Result
    rules: ProjectRules
    text: str | None


async def list_results(
    retoma: Retoma,
    execution: int,
    which: Which,
    *,
    limit: int,
    after: int = 0,
    with_stack: bool = False,
) -> Page[Result]:
    """List what came of the documents, in the order in which they were submitted. `with_stack`: for
    admins only."""

    def look(tx: Transaction) -> list[Result]:
        store.executions.stand_of(tx, execution)
        return store.documents.list_results(tx, execution, which, after=after, n=limit + 1)

    rows = [_shown(each, with_stack=with_stack) for each in await read(retoma, look)]
    return cut_page(rows, limit, lambda each: each.id)


async def read_results(
    retoma: Retoma, execution: int, which: Which
) -> AsyncIterator[Sequence[Result]]:
    """Read what came of all the documents, without stacks; NotFound before the first of them."""
    after: int | None = 0
    while after is not None:
        page = await list_results(retoma, execution, which, limit=CHUNK, after=after)
        yield page.items
        after = page.next


async def get_document(
    retoma: Retoma, execution: int, document: int, *, with_stack: bool = False
) -> Result:
    """Return what came of one document. `with_stack`: for admins only."""
    found = await read(retoma, lambda tx: store.documents.result_of(tx, execution, document))
    return _shown(found, with_stack=with_stack)


async def read_document(
    retoma: Retoma, execution: int, document: int, *, with_stack: bool = False
) -> DocumentDetails:
    """Return one document with its text, read at one instant. `with_stack`: for admins only."""

    def look(tx: Transaction) -> DocumentDetails:
        result = store.documents.result_of(tx, execution, document)
        rules = store.documents.wanted_of(tx, document).rules
        try:
            text = store.documents.text_of(tx, execution, document)
        except NotFound:
            text = None
        return DocumentDetails(_shown(result, with_stack=with_stack), rules, text)

    return await read(retoma, look)


async def get_submitted(retoma: Retoma, document: int) -> Wanted:
    """Return what was submitted: a document, the execution it belongs to, and its rules."""
    return await read(retoma, lambda tx: store.documents.wanted_of(tx, document))


async def find_document(retoma: Retoma, execution: int, code: str) -> int:
    """Return the id of the document of an execution that has this code."""
    return await read(retoma, lambda tx: store.documents.find_document(tx, execution, code))


async def get_text(retoma: Retoma, execution: int, document: int) -> str:
    """Return the text of a document; NotFound where it was not read."""
    return await read(retoma, lambda tx: store.documents.text_of(tx, execution, document))


async def open_original(
    retoma: Retoma, execution: int, document: int
) -> tuple[str, int, AsyncIterator[bytes]]:
    """Return the name, the size and the bytes of the file as it came in; NotFound where it is no
    longer kept."""
    found = await get_document(retoma, execution, document)
    pieces = Contents(retoma).pieces(found.sha256)
    first = await anext(pieces, b"")  # a missing file is an error before the answer begins
    return found.arquivo, found.tamanho, _chain(first, pieces)


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def retry_document(retoma: Retoma, execution: int, document: int, *, actor: str) -> None:
    """Retry one document that failed, or that is parked."""
    found = await get_document(retoma, execution, document)
    if found.status is DocumentStatus.ERRO:
        await retoma.retry(found.job, actor=actor)
    elif found.waits_for_person:
        await retoma.resume(found.job, actor=actor)
    else:
        raise IllegalMove(
            say(
                "document {document} is {status}: only one that failed, or that waits for a"
                " person, is tried again",
                document=document,
                status=found.status,
            )
        )


async def skip_document(
    retoma: Retoma, execution: int, document: int, why: str, *, actor: str
) -> None:
    found = await get_document(retoma, execution, document)
    await retoma.skip(found.job, why, actor=actor)


async def review_document(
    retoma: Retoma, execution: int, document: int, label: str, *, actor: str
) -> bool:
    """Confirm or correct a label; return whether the model was right."""
    return await retoma.write(
        lambda tx: store.documents.review(tx, execution, document, label, actor=actor)
    )


def _shown(result: Result, *, with_stack: bool) -> Result:
    """Without its stack, which may name what only admins may know."""
    if with_stack or result.erro_stack is None:
        return result
    return replace(result, erro_stack=None)
