"""Executions: batches of documents, set going, resumed, tried again, ended; never a status stored.

How one stands is told by the view of the document's name, from its jobs and this row, at every instant.
What a person changes is compare and set on the epoch or the generation that was read.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from retoma import db
from retoma.apps.documents.model import (
    CERTAIN,
    KIND,
    MEANINGS,
    MOST_DOCUMENTS,
    STATUS,
    TERMINAL,
    DocumentStatus,
    ExecutionStatus,
    ProjectRules,
)
from retoma.apps.documents.store import contents
from retoma.apps.documents.store.projects import project_of
from retoma.apps.documents.store.rows import SQL, rules_from, rules_text
from retoma.db import NO_COLUMN
from retoma.engine import query
from retoma.engine import store as engine
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.words import Said, say, stored

MOST_STUCK: Final = 100  # executions that one look finds
OVER: Final = (ExecutionStatus.CONCLUIDO, ExecutionStatus.ERRO, ExecutionStatus.TRAVADO)
E = ExecutionStatus
L = TypeVar("L", bound="ExecutionLine")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLine:
    """An execution in a list, by the names of the seed."""

    id: int
    projeto_id: int
    nome: str
    status: ExecutionStatus
    total: int
    por_status: Mapping[DocumentStatus, int] = field(default_factory=dict, metadata=NO_COLUMN)
    progresso: float = field(default=0.0, metadata=NO_COLUMN)  # ended, in percent
    tentativas_retry: int
    max_retries: int
    geracao: int
    criado_por: str
    criado_em: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution(ExecutionLine):
    """All that is known of an execution."""

    ultimo_heartbeat: datetime | None
    ultimo_codigo_processado: str | None
    epoca: int
    reprocessados: int
    travado_em: datetime | None
    erro_em: datetime | None
    cancelada_em: datetime | None
    cancelada_por: str | None
    bloqueio_codigo: str | None
    bloqueio_mensagem: str | None
    bloqueada_em: datetime | None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """What somebody wants to have classified; its content is stored already."""

    code: str
    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Ask:
    """The payload of a document's job. `same`: its content, where another of them has it too."""

    document: int
    same: str | None = None


@dataclass(frozen=True, slots=True)
class Stand:
    """How an execution stands, and by which numbers it may be moved."""

    status: ExecutionStatus
    epoch: int
    generation: int
    resumes: int
    most_resumes: int
    reprocessed: int
    blocked: str | None = None  # the code by which the service rejects every document of it

    @property
    def spent(self) -> bool:
        """It was resumed as often as its project lets it be."""
        return self.resumes >= self.most_resumes


@dataclass(frozen=True, slots=True)
class Stuck:
    """An execution that does not move."""

    id: int
    name: str
    resumes: int
    most_resumes: int
    epoch: int
    stuck_at: datetime | None
    heartbeat: datetime | None


# — begun —


def add_execution(
    tx: Transaction,
    project: int,
    wanted: Sequence[NewDocument],
    *,
    actor: str,
    name: str | None = None,
    budget: str | None = None,
    without: Collection[str] = (),
) -> int:
    """All of them or none, as one batch; it keeps the rules of its project as they are now. `without`:
    codes of documents that came in and are not wanted after all."""
    wanted = _but(wanted, without)
    _check(wanted)
    found = project_of(tx, project)
    _check_contents(tx, wanted)
    times = Counter(each.sha256 for each in wanted)
    ids = _add_documents(tx, wanted)
    asks = [
        Ask(id_, each.sha256 if times[each.sha256] > 1 else None)
        for id_, each in zip(ids, wanted, strict=True)
    ]
    called = name or found.name
    batch = tx.submit_many(KIND, asks, name=called, budget=budget, actor=actor)
    tx.run(
        SQL.add_execution,
        execution=batch.id,
        project=project,
        name=called,
        rules=rules_text(found.rules),
        total=len(ids),
        most=found.rules.max_retries_execucao,
        actor=actor,
    )
    tx.run(SQL.name_documents, execution=batch.id)
    if len(times) < len(wanted):
        tx.run(SQL.name_origins, execution=batch.id)
    return batch.id


def _add_documents(tx: Transaction, wanted: Sequence[NewDocument]) -> list[int]:
    rows = [
        {"code": each.code, "name": each.name, "sha256": each.sha256, "size": each.size}
        for each in wanted
    ]
    return sorted(tx.all(SQL.add_documents, into=int, rows=json.dumps(rows)))


def _but(wanted: Sequence[NewDocument], without: Collection[str]) -> Sequence[NewDocument]:
    unknown = sorted({*without} - {each.code for each in wanted})
    if unknown:
        raise BadInput(
            say("no document that came is called {codes}", codes=", ".join(unknown[:10]))
        )
    return [each for each in wanted if each.code not in without]


def _check(wanted: Sequence[NewDocument]) -> None:
    if not wanted:
        raise BadInput(say("an execution needs one document at least"))
    if len(wanted) > MOST_DOCUMENTS:
        raise BadInput(say("more than {most} documents at a time", most=MOST_DOCUMENTS))
    twice = [code for code, n in Counter(each.code for each in wanted).items() if n > 1]
    if twice:
        raise BadInput(say("codes given twice: {codes}", codes=", ".join(sorted(twice)[:10])))


def _check_contents(tx: Transaction, wanted: Sequence[NewDocument]) -> None:
    """What was never uploaded, or was dropped since, cannot be classified."""
    there = contents.want(tx, (each.sha256 for each in wanted))
    missing = [each.code for each in wanted if each.sha256 not in there]
    if missing:
        raise BadInput(
            say("upload these first, nothing was begun: {codes}", codes=", ".join(missing[:10]))
        )


# — seen —


def get_execution(tx: db.Transaction, execution: int) -> Execution:
    found = tx.one(SQL.get_execution, into=Execution, execution=execution)
    if found is None:
        raise _unknown(execution)
    return _count(tx, found)


def list_executions(
    tx: db.Transaction,
    *,
    before: int | None,
    n: int,
    project: int | None = None,
    status: ExecutionStatus | None = None,
) -> list[ExecutionLine]:
    wanted = None if status is None else str(status)
    which = {"before": before, "project": project, "status": wanted, "n": n}
    return [
        _count(tx, each) for each in tx.all(SQL.list_executions, into=ExecutionLine, **which)
    ]


def _count(tx: db.Transaction, execution: L) -> L:
    """Count the documents of an execution by their status."""
    counts = counted(tx, execution.id)
    total = sum(counts.values())
    progress = round(100 * ended(counts) / total, 1) if total else 0.0
    return replace(execution, por_status=counts, progresso=progress)


def stand_of(tx: db.Transaction, execution: int) -> Stand:
    found = tx.one(SQL.status_of, into=Stand, execution=execution)
    if found is None:
        raise _unknown(execution)
    return found


def counted(tx: db.Transaction, execution: int) -> dict[DocumentStatus, int]:
    """How many documents are in which status; they add up to all of them."""
    return by_status(query.count_jobs(tx, execution))


def by_status(counts: Mapping[State, int]) -> dict[DocumentStatus, int]:
    told = dict.fromkeys(DocumentStatus, 0)
    for state, n in counts.items():
        told[STATUS[state]] += n
    return told


def ended(counts: Mapping[DocumentStatus, int]) -> int:
    return sum(n for status, n in counts.items() if status in TERMINAL)


def holds_of(tx: db.Transaction, execution: int) -> list[tuple[str, int, Any]]:
    """Why what is open does not end now: a word for it, how many, until when the first waits."""
    return [(why, int(n), until) for why, n, until in tx.all(SQL.holds_of, execution=execution)]


# — moved —


def resume(
    tx: Transaction, execution: int, *, actor: str, anyway: bool = False
) -> Stand | None:
    """The next epoch of one that is stuck or that the service rejects; None where it is neither, or
    somebody was first.

    IllegalMove where it was resumed too often, and where no runner could go on with it: that is counted
    as no resume. `anyway`: an admin says so.
    """
    let_go = _unblock(tx, execution, actor)
    stand = stand_of(tx, execution)
    if stand.status not in (E.TRAVADO, E.ERRO):
        return stand if let_go else None
    if tx.one(SQL.runner_lives) is None:
        if let_go:
            return stand
        raise IllegalMove(
            say(
                "execution {execution} cannot be resumed: no runner that classifies documents is"
                " alive; start one with `retoma runner`, then resume. Nothing was changed, and this"
                " counts as no resume",
                execution=execution,
            )
        )
    if not anyway and (stand.spent or stand.status is E.ERRO):
        raise IllegalMove(
            say(
                "execution {execution} was resumed {n} of {most} times and does not move;"
                " nothing was changed: look into it, or let an admin resume it",
                execution=execution,
                n=stand.resumes,
                most=stand.most_resumes,
            )
        )
    how = {"execution": execution, "epoch": stand.epoch, "anyway": int(anyway)}
    if tx.one(SQL.resume_execution, **how) is None:
        return stand if let_go else None
    _unpause(tx, execution, actor)
    _tell(tx, "documents.resumed", execution, actor, epoch=stand.epoch + 1)
    return stand_of(tx, execution)


def block(
    tx: Transaction, execution: int, epoch: int, code: str, words: str, *, actor: str = "runner"
) -> bool:
    """The service rejects what this execution asks: whether its other documents wait from now on.
    Whoever asked before somebody resumed it changes nothing."""
    how = {"execution": execution, "epoch": epoch, "code": code, "words": words or None}
    if tx.one(SQL.block_execution, certain=int(code in CERTAIN), **how) is None:
        return False
    _tell(tx, "documents.blocked", execution, actor, code=code)
    return True


def _unblock(tx: Transaction, execution: int, actor: str) -> bool:
    """Whether the service is asked again: by the model that the project names now, and as much text."""
    stand = stand_of(tx, execution)
    if stand.blocked is None:
        return False
    rules = _rules_now(tx, execution)
    how = {"execution": execution, "epoch": stand.epoch, "rules": rules_text(rules)}
    if tx.one(SQL.unblock_execution, **how) is None:
        return False
    _tell(tx, "documents.unblocked", execution, actor, code=stand.blocked, model=rules.model)
    return True


def _rules_now(tx: Transaction, execution: int) -> ProjectRules:
    """Its own, but by the model, the OCR and as much text as the project names now: what may have failed."""
    row = tx.one(SQL.rules_of, execution=execution)
    if row is None:
        raise _unknown(execution)
    own_rules, rules_now = row
    own = rules_from(own_rules)
    if rules_now is None:
        return own
    now = rules_from(rules_now)
    return replace(own, model=now.model, most_chars=now.most_chars, ocr=now.ocr)


def reprocess(
    tx: Transaction, execution: int, *, actor: str, code: str | None = None
) -> tuple[Stand, bool]:
    """The next generation of what failed, in one transaction: whoever comes second finds it done.

    How it stands then, and whether it was this call that set it going. `code`: only what failed by it.
    """
    stand = stand_of(tx, execution)
    if stand.status not in OVER:
        _check_begun_before(execution, stand)
        return stand, False
    dead = _count_dead(tx, execution, code)
    if not dead and stand.status is not E.ERRO:
        return stand, False
    how = {"execution": execution, "generation": stand.generation, "reprocessed": dead}
    rules = rules_text(_rules_now(tx, execution))
    if tx.one(SQL.reprocess_execution, rules=rules, **how) is None:
        return stand_of(tx, execution), False
    _unpause(tx, execution, actor)
    _again(tx, execution, actor, code)
    _tell(tx, "documents.reprocessed", execution, actor, documents=dead, code=code)
    return stand_of(tx, execution), True


def _check_begun_before(execution: int, stand: Stand) -> None:
    """Who asks twice is answered twice; who asks while the first generation goes on, too soon."""
    if stand.generation == 1:
        raise IllegalMove(
            say(
                "execution {execution} is {status}: what failed is tried again once it has ended",
                execution=execution,
                status=stand.status,
            )
        )


def _count_dead(tx: db.Transaction, execution: int, code: str | None) -> int:
    if code is None:
        return query.count_jobs(tx, execution).get(State.DEAD, 0)
    return query.count_codes(tx, execution).get(code, 0)


def _again(tx: db.Transaction, execution: int, actor: str, code: str | None) -> None:
    """Every dead document, bite by bite; all of them, or the whole is undone."""
    codes = None if code is None else [code]
    which = engine.Which(execution, State.DEAD, engine.now(tx), codes)
    move = partial(engine.again_jobs, was=State.DEAD, actor=actor)
    moved, after, last = 0, 0, False
    while not last:
        n, after, last = engine.move_bite(
            tx, which, move, after=after, offset=moved, actor=actor, told="batch.retried"
        )
        moved += n
    if engine.any_left(tx, which):
        raise IllegalMove(
            say(
                "documents of execution {execution} are being moved: ask again",
                execution=execution,
            )
        )


def _unpause(tx: Transaction, execution: int, actor: str) -> None:
    engine.unpause_batch(tx, execution, actor=actor)
    back = 0
    while bite := engine.put_back_batch(tx, execution, offset=back):
        back += bite


def cancel(tx: Transaction, execution: int, *, actor: str) -> bool:
    """Nobody begins anything more of it; whether this call said so. Its jobs are canceled apart."""
    if stand_of(tx, execution).status is E.CONCLUIDO:
        return False
    if tx.one(SQL.cancel_execution, execution=execution, actor=actor) is None:
        return False
    _tell(tx, "documents.canceled", execution, actor)
    return True


# — watched —


def find_stuck(tx: db.Transaction) -> list[Stuck]:
    return tx.all(SQL.find_stuck, into=Stuck, n=MOST_STUCK)


def watch_over(tx: Transaction, *, actor: str) -> int:
    """Write down what is stuck; what is so again and may not be resumed is over. How many moved."""
    moved = 0
    for each in find_stuck(tx):
        how = {"execution": each.id, "epoch": each.epoch}
        if each.stuck_at is None:
            if tx.one(SQL.mark_stuck, **how) is not None:
                _tell(tx, "documents.stuck", each.id, actor, epoch=each.epoch)
                moved += 1
        elif (
            each.resumes >= each.most_resumes and tx.one(SQL.fail_execution, **how) is not None
        ):
            # Nothing of it begins by itself any more: what is over stays over until a person says so.
            engine.pause_batch(tx, batch=each.id, actor=actor)
            _tell(tx, "documents.failed", each.id, actor, resumes=each.resumes)
            moved += 1
    return moved


def watch(tx: db.Transaction) -> dict[str, dict[str, Any]]:
    """What somebody should know of: an execution that does not move, or that the service rejects."""
    blocked = {
        f"execucao {id_} {code}": stored(
            say(
                "execution {name} waits for configuration: {why}",
                name=name,
                why=_why(code, words),
            )
        )
        for id_, name, code, words in tx.all(SQL.find_blocked, n=MOST_STUCK)
    }
    return blocked | {
        f"execucao {each.id}": stored(
            say(
                "execution {name} does not move; it was resumed {n} of {most} times",
                name=each.name,
                n=each.resumes,
                most=each.most_resumes,
            )
        )
        for each in find_stuck(tx)
    }


def _why(code: str, words: str | None) -> Said:
    meaning = MEANINGS[code]
    return say("{meaning}: {words}", meaning=meaning, words=words) if words else meaning


def _tell(tx: Transaction, what: str, execution: int, actor: str, **details: Any) -> None:
    tx.tell(what, f"execucao {execution}", details or None, actor=actor)


def _unknown(execution: int) -> NotFound:
    return NotFound(say("there is no execution {execution}", execution=execution))
