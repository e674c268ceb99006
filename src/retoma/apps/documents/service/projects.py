"""Projects: add, change, remove; how often their model was right, and the set that people labelled."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Final

from retoma.apps.documents import store
from retoma.apps.documents.model import ProjectRules
from retoma.apps.documents.service.database import Page, create_once, cut_page, read
from retoma.apps.documents.store.documents import Review
from retoma.apps.documents.store.projects import Project
from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.store import Asked
from retoma.library import Retoma
from retoma.web.files import csv_line

CHUNK: Final = 100  # reviewed documents that are read at a time


async def list_projects(
    retoma: Retoma, *, limit: int, before: int | None = None
) -> Page[Project]:
    """List projects, the newest first."""
    rows = await read(
        retoma, lambda tx: store.projects.list_projects(tx, before=before, n=limit + 1)
    )
    return cut_page(rows, limit, lambda each: each.id)


async def get_project(retoma: Retoma, project: int) -> Project:
    return await read(retoma, lambda tx: store.projects.project_of(tx, project))


async def find_project(retoma: Retoma, name: str) -> int:
    """Return the id of the project that has this name."""
    return await read(retoma, lambda tx: store.projects.find_project(tx, name))


async def add_project(
    retoma: Retoma, name: str, rules: ProjectRules, *, actor: str, once: Asked | None = None
) -> tuple[int, bool]:
    """Add a project; return its id, and whether this call added it."""
    return await create_once(
        retoma, once, lambda tx: store.projects.add_project(tx, name, rules, actor=actor)
    )


async def change_project(
    retoma: Retoma, project: int, name: str, rules: ProjectRules, *, actor: str
) -> None:
    """Change a project for executions to come: those that exist keep the rules they began with."""
    await retoma.write(
        lambda tx: store.projects.change_project(tx, project, name, rules, actor=actor)
    )


async def remove_project(retoma: Retoma, project: int, *, actor: str) -> None:
    """Remove a project: it takes no more executions, and keeps its results."""
    await retoma.write(lambda tx: store.projects.remove_project(tx, project, actor=actor))


# — reviews —


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many of the documents that the model gave a label were reviewed, and how many were right."""

    rotulo: str
    revisados: int
    corretos: int
    acerto: float  # from 0 to 1
    outros: Mapping[str, int]  # the labels that people gave the others


async def measure_accuracy(retoma: Retoma, project: int) -> Sequence[Accuracy]:
    """Return the accuracy of a project by the label that the model gave."""

    def count(tx: Transaction) -> list[tuple[str, str, int]]:
        store.projects.project_of(tx, project)
        return store.documents.count_reviews(tx, project)

    by_prediction: dict[str, dict[str, int]] = {}
    for predicted, label, n in await read(retoma, count):
        by_prediction.setdefault(predicted, {})[label] = n
    return [_accuracy(predicted, labels) for predicted, labels in by_prediction.items()]


def _accuracy(predicted: str, labels: Mapping[str, int]) -> Accuracy:
    reviewed, right = sum(labels.values()), labels.get(predicted, 0)
    others = {label: n for label, n in labels.items() if label != predicted}
    return Accuracy(predicted, reviewed, right, round(right / reviewed, 4), others)


async def write_reviews_jsonl(retoma: Retoma, project: int) -> AsyncIterator[bytes]:
    """Write what people reviewed as JSON Lines, each document with its text."""
    async for review, text in _read_reviews(retoma, project, with_text=True):
        line = {**asdict(review), "revisado_em": _iso(review), "texto": text}
        yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


async def write_reviews_csv(retoma: Retoma, project: int) -> AsyncIterator[bytes]:
    """Write what people reviewed as a table without texts, in which nothing is a formula."""
    yield csv_line([each.name for each in fields(Review)])
    async for review, _ in _read_reviews(retoma, project, with_text=False):
        yield csv_line([*{**asdict(review), "revisado_em": _iso(review)}.values()])


async def _read_reviews(
    retoma: Retoma, project: int, *, with_text: bool
) -> AsyncIterator[tuple[Review, str | None]]:
    after: int | None = 0
    while after is not None:
        reviews = await read(retoma, partial(_list_reviews, project=project, after=after))
        for each in reviews:
            text = await read(retoma, partial(_text_of, review=each)) if with_text else None
            yield each, text
        after = reviews[-1].id if reviews else None


def _list_reviews(tx: Transaction, *, project: int, after: int) -> list[Review]:
    return store.documents.list_reviews(tx, project, after=after, n=CHUNK)


def _text_of(tx: Transaction, *, review: Review) -> str | None:
    try:
        return store.documents.text_of(tx, review.execucao_id, review.id)
    except NotFound:
        return None


def _iso(review: Review) -> str | None:
    return None if review.revisado_em is None else review.revisado_em.isoformat()
