"""What people do with executions and documents; API, pages and command line call these."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from retoma.apps.documents import store
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.model import DocumentStatus
from retoma.apps.documents.store.executions import Stand
from retoma.db import Transaction
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.library import Retoma
from retoma.words import say

LABELLED: Final = 100  # reviewed documents that are read at a time


async def resume(
    retoma: Retoma, execution: int, *, actor: str, anyway: bool = False
) -> tuple[Stand, bool]:
    """Go on where it stopped: how it stands then, and whether this call set it going. What waits for a
    person or was paused goes on too, and that is counted as no resume."""
    moved = await retoma.write(
        lambda tx: store.executions.resume(tx, execution, actor=actor, anyway=anyway)
    )
    await retoma.take_back(actor=actor)
    batch = await retoma.batch(execution)
    unparked = 0
    if not (await batch.progress()).finished:
        unparked = await batch.resume(actor=actor)
    stand = await stand_of(retoma, execution)
    return stand, moved is not None or unparked > 0


async def cancel(retoma: Retoma, execution: int, *, actor: str) -> tuple[Stand, bool]:
    """End what has not ended; whether this call said so first."""
    canceled = await retoma.write(
        lambda tx: store.executions.cancel(tx, execution, actor=actor)
    )
    await (await retoma.batch(execution)).cancel(actor=actor)
    return await stand_of(retoma, execution), canceled


async def reprocess(
    retoma: Retoma, execution: int, *, actor: str, code: str | None = None
) -> tuple[Stand, bool]:
    """Try what failed again, as a new generation; whether this call set it going. `code`: only what
    failed by it."""
    return await retoma.write(
        lambda tx: store.executions.reprocess(tx, execution, actor=actor, code=code)
    )


async def stand_of(retoma: Retoma, execution: int) -> Stand:
    database = await retoma.database()
    return await database.read(lambda tx: store.executions.stand_of(tx, execution))


async def retry(retoma: Retoma, execution: int, document: int, *, actor: str) -> None:
    """Try one document again: it failed, or waits for a person."""
    told = await _told(retoma, execution, document)
    match told["status"]:
        case DocumentStatus.ERRO:
            await retoma.retry(told["job"], actor=actor)
        case DocumentStatus.PENDENTE if told["erro_codigo"] is not None:
            await retoma.resume(told["job"], actor=actor)
        case status:
            raise IllegalMove(
                say(
                    "document {document} is {status}: only one that failed, or that waits for a"
                    " person, is tried again",
                    document=document,
                    status=status,
                )
            )


async def skip(retoma: Retoma, execution: int, document: int, why: str, *, actor: str) -> None:
    """Leave one document out, because a person says so and why."""
    told = await _told(retoma, execution, document)
    await retoma.skip(told["job"], why, actor=actor)


async def skip_failed(
    retoma: Retoma, execution: int, code: str, why: str, *, actor: str
) -> int:
    """Leave out every document that failed, or is parked, by this code; how many that was."""
    return await (await retoma.batch(execution)).skip(why, codes=[code], actor=actor)


async def review(
    retoma: Retoma, execution: int, document: int, label: str, *, actor: str
) -> bool:
    """Confirm or correct a label; whether the model was right."""
    return await retoma.write(
        lambda tx: store.documents.review(tx, execution, document, label, actor=actor)
    )


async def original(
    retoma: Retoma, execution: int, document: int
) -> tuple[str, int, AsyncIterator[bytes]]:
    """The file as it came in: what it is called, how many bytes it has, and these. NotFound where they
    are no longer kept."""
    told = await _told(retoma, execution, document)
    pieces = Contents(retoma).pieces(told["sha256"])
    first = await anext(pieces, b"")  # whether it is there is known before anything is answered
    return told["arquivo"], told["tamanho"], _from(first, pieces)


async def _from(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of the documents that the model gave a label and a person reviewed: how many were right."""

    label: str
    reviewed: int
    right: int
    instead: Mapping[str, int]  # what people said of the others

    @property
    def share(self) -> float:
        return self.right / self.reviewed


async def accuracy(retoma: Retoma, project: int) -> Sequence[Accuracy]:
    """By the label that the model gave."""
    database = await retoma.database()

    def counted(tx: Transaction) -> list[tuple[str, str, int]]:
        store.projects.project_of(tx, project)
        return store.documents.count_reviews(tx, project)

    found: dict[str, dict[str, int]] = {}
    for predicted, label, n in await database.read(counted):
        found.setdefault(predicted, {})[label] = n
    return [
        Accuracy(
            predicted,
            sum(labels.values()),
            labels.get(predicted, 0),
            {label: n for label, n in labels.items() if label != predicted},
        )
        for predicted, labels in found.items()
    ]


async def labelled(
    retoma: Retoma, project: int, *, texts: bool
) -> AsyncIterator[dict[str, Any]]:
    """The documents of a project that people reviewed, each with its label; with what was read of it."""
    database = await retoma.database()
    await database.read(lambda tx: store.projects.project_of(tx, project))
    after = 0
    while rows := await database.read(
        lambda tx, after=after: store.documents.list_reviews(  # type: ignore[misc]
            tx, project, after=after, n=LABELLED
        )
    ):
        for row in rows:
            if texts:
                row["texto"] = await database.read(partial(_text_of, row=row))
            yield row
        after = rows[-1]["id"]


def _text_of(tx: Transaction, row: Mapping[str, Any]) -> str | None:
    try:
        return store.documents.text_of(tx, row["execucao_id"], row["id"])
    except NotFound:
        return None


async def _told(retoma: Retoma, execution: int, document: int) -> dict[str, Any]:
    database = await retoma.database()
    return await database.read(lambda tx: store.documents.result_of(tx, execution, document))
