"""Documents: what is to be classified, what came of it, and who asks about a content, or has."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from retoma import db
from retoma.apps.documents.model import Classified, DocumentStatus, ProjectRules
from retoma.apps.documents.store.rows import SQL, StoredRules, rules_from
from retoma.codec import decode, encode
from retoma.db import Call
from retoma.db.rows import read_json
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.run.transaction import Transaction
from retoma.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a document, by the names of the seed; in the order of the statements."""

    id: int
    codigo: str
    arquivo: str
    sha256: str
    tamanho: int
    status: DocumentStatus
    rotulo: str | None
    confianca: float | None
    justificativa: str | None
    modelo: str | None
    revisar: bool
    cortado: bool
    paginas: int | None
    origem: int | None
    tentativas: int
    erro_codigo: str | None
    erro_mensagem: str | None
    erro_stack: str | None
    ultimo_erro_em: datetime | None
    pulado_motivo: str | None
    concluido_em: datetime | None
    rotulo_revisado: str | None
    revisado_por: str | None
    revisado_em: datetime | None
    job: int

    @property
    def waits_for_person(self) -> bool:
        """Whether it is parked: only a person sets it going again."""
        return self.status is DocumentStatus.PENDENTE and self.erro_codigo is not None


@dataclass(frozen=True, slots=True)
class Review:
    """What a person said of the label of a document, beside what the model said."""

    id: int
    execucao_id: int
    codigo: str
    arquivo: str
    sha256: str
    rotulo_modelo: str
    rotulo: str
    revisado_por: str
    revisado_em: datetime | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a story is told of its document."""

    id: int
    execution: int
    code: str
    name: str
    sha256: str
    size: int
    rules: StoredRules
    epoch: int  # of its execution
    blocked: str | None = None  # the code by which the service rejects all of the execution


class Turn(NamedTuple):
    """A document whose story begins, and under which claim."""

    document: int
    job: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TakenUp:
    """What a story begins with. `answer`: what another document with the same content, asked in the
    same way, was answered; without one, `ours` says whether this document may ask now."""

    wanted: Wanted
    answer: Classified | None
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Of which results a page is wanted."""

    status: DocumentStatus | None = None
    label: str | None = None
    code: str | None = None
    review: bool | None = None


def wanted_of(tx: db.Transaction, document: int) -> Wanted:
    found = tx.one(SQL.get_document, into=Wanted, document=document)
    if found is None:
        raise _unknown(document)
    return found


def result_of(tx: db.Transaction, execution: int, document: int) -> Result:
    found = tx.one(SQL.get_result, into=Result, execution=execution, document=document)
    if found is None:
        raise NotFound(
            say(
                "there is no document {document} in execution {execution}",
                document=document,
                execution=execution,
            )
        )
    return found


def text_of(tx: db.Transaction, execution: int, document: int) -> str:
    """What was read of it; NotFound where nobody has, or it could not be."""
    found = tx.one(SQL.get_text, into=dict, execution=execution, document=document)
    if found is None:
        raise NotFound(say("nothing was read of document {document} yet", document=document))
    return str(found["text"])


def list_results(
    tx: db.Transaction, execution: int, which: Which, *, after: int, n: int
) -> list[Result]:
    return tx.all(
        SQL.list_results,
        into=Result,
        execution=execution,
        status=None if which.status is None else str(which.status),
        label=which.label,
        code=which.code,
        review=which.review,
        after=after,
        n=n,
    )


def count_labels(tx: db.Transaction, execution: int) -> dict[str, int]:
    return {label: int(n) for label, n in tx.all(SQL.count_labels, execution=execution)}


def find_document(tx: db.Transaction, execution: int, code: str) -> int:
    """Which document of an execution has this code."""
    document = tx.one(SQL.document_by_code, into=int, execution=execution, code=code)
    if document is None:
        raise NotFound(
            say(
                "there is no document {code!r} in execution {execution}",
                code=code,
                execution=execution,
            )
        )
    return document


# — reviewed —


def review(tx: Transaction, execution: int, document: int, label: str, *, actor: str) -> bool:
    """Say that this is its label; whether the model was right. The last person who says so counts."""
    result = result_of(tx, execution, document)
    wanted = wanted_of(tx, document)
    if result.rotulo is None:
        raise IllegalMove(
            say("document {document} has no label yet to confirm or correct", document=document)
        )
    if label not in wanted.rules.names:
        raise BadInput(
            say(
                "{label!r} is not a label of this execution: {labels}",
                label=label,
                labels=", ".join(wanted.rules.names),
            )
        )
    how = {"execution": execution, "document": document, "label": label, "actor": actor}
    predicted = tx.one(SQL.review_document, into=str, **how)
    if predicted is None:
        raise IllegalMove(
            say("document {document} has no label yet to confirm or correct", document=document)
        )
    details = {"predicted": predicted, "label": label}
    tx.tell("documents.label_reviewed", f"documento {document}", details, actor=actor)
    return predicted == label


def list_reviews(tx: db.Transaction, project: int, *, after: int, n: int) -> list[Review]:
    return tx.all(SQL.list_reviews, into=Review, project=project, after=after, n=n)


def count_reviews(tx: db.Transaction, project: int) -> list[tuple[str, str, int]]:
    """By what the model said and what people said: how many documents."""
    rows = tx.all(SQL.count_reviews, project=project)
    return [(predicted, label, int(n)) for predicted, label, n in rows]


# — asked once —


def take_up(
    tx: db.Transaction, turns: Sequence[Turn], recipe_of: Callable[[ProjectRules], str]
) -> list[TakenUp | NotFound]:
    """Begin the stories of these: of all documents with one content, whatever execution they are of,
    one asks and the others wait for its answer. Doing it again changes nothing."""
    asking = _askings(tx, turns, recipe_of)
    firsts: dict[tuple[str, str], _Asking] = {}
    for each in asking.values():
        firsts.setdefault(each.key, each)
    ours, answers = _asked(tx, [*firsts.values()])
    return [
        TakenUp(
            asking[turn.document].wanted,
            answers.get(asking[turn.document].key),
            turn.document in ours,
        )
        if turn.document in asking
        else _unknown(turn.document)
        for turn in turns
    ]


@dataclass(frozen=True, slots=True)
class _Asking:
    turn: Turn
    wanted: Wanted
    recipe: str

    @property
    def key(self) -> tuple[str, str]:
        return self.wanted.sha256, self.recipe

    @property
    def row(self) -> dict[str, Any]:
        return {"sha256": self.wanted.sha256, "recipe": self.recipe, **self.turn._asdict()}


def _askings(
    tx: db.Transaction, turns: Sequence[Turn], recipe_of: Callable[[ProjectRules], str]
) -> dict[int, _Asking]:
    """By document. The rules of an execution are read once, however many of it begin."""
    by_document = {turn.document: turn for turn in turns}
    rules: dict[int, tuple[ProjectRules, str]] = {}
    asking = {}
    for id_, execution, code, name, sha256, size, told, epoch, blocked in tx.all(
        SQL.get_documents, ids=json.dumps([*by_document])
    ):
        if execution not in rules:
            read = rules_from(told)
            rules[execution] = read, recipe_of(read)
        wanted = Wanted(
            id_, execution, code, name, sha256, size, rules[execution][0], epoch, blocked
        )
        asking[id_] = _Asking(by_document[id_], wanted, rules[execution][1])
    return asking


def _asked(
    tx: db.Transaction, firsts: Sequence[_Asking]
) -> tuple[set[int], dict[tuple[str, str], Classified]]:
    """Which documents may ask, and what was answered already, by content and recipe."""
    if not firsts:
        return set(), {}
    rows = {"rows": json.dumps([each.row for each in firsts])}
    taken, found = tx.together([Call(SQL.take_askings, rows), Call(SQL.find_answers, rows)])
    mine = {each.key: each.turn.document for each in firsts}
    answers = {
        (sha256, recipe): _answer(result, document)
        for sha256, recipe, document, result in found
        if mine[sha256, recipe] != document
    }
    return {document for (document,) in taken}, answers


def _answer(result: Any, document: int) -> Classified:
    found: Classified = decode(encode({**read_json(result), "origin": document}), Classified)
    return found


def _unknown(document: int) -> NotFound:
    return NotFound(say("there is no document {document}", document=document))
