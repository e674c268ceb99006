"""How an execution stands and why, in words for the person who waits for it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from retoma.apps.documents import store
from retoma.apps.documents.model import (
    CURES,
    MEANINGS,
    ROUTE,
    DocumentStatus,
    ExecutionStatus,
    meaning_of,
)
from retoma.apps.documents.service.database import read
from retoma.apps.documents.store.executions import OVER, Execution
from retoma.db import Transaction
from retoma.db.rows import read_time
from retoma.engine.store.cost import CostSeen
from retoma.library import Retoma
from retoma.words import Language, Said, say, tell

E = ExecutionStatus
MOVING: Final = frozenset({"running", "line", "backoff"})  # holds that end by themselves


@dataclass(frozen=True, slots=True)
class Hold:
    """Why so many documents do not end now. `ate`: when the first of them is tried again."""

    motivo: str
    descricao: str
    documentos: int
    ate: datetime | None


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why the service rejects every request of an execution, and what a person does about that."""

    codigo: str
    mensagem: str
    palavras: str | None
    cura: str
    desde: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDetails(Execution):
    """How an execution stands, and why."""

    mensagem: str
    motivos: Sequence[Hold]
    bloqueio: Blocked | None
    erros: Mapping[str, int]  # documents by the code that they failed by
    rotulos: Mapping[str, int]
    pode_retomar: bool
    pode_reprocessar: bool
    eta_segundos: float | None
    custos: Sequence[CostSeen]
    rota_origem: str = ROUTE


async def describe_execution(
    retoma: Retoma, execution: int, language: Language
) -> ExecutionDetails:
    """Return how far an execution is, what holds it back and what failed."""
    found, holds, labels = await read(retoma, lambda tx: _look(tx, execution))
    eta = (
        (await (await retoma.batches.get(execution)).progress()).eta if _moves(holds) else None
    )
    return ExecutionDetails(
        **asdict(found),
        mensagem=tell(_summarize(found), language),
        motivos=[
            Hold(why, tell(_describe_hold(why), language), n, read_time(until))
            for why, n, until in holds
        ],
        bloqueio=_describe_block(found, language),
        erros=await retoma.dead.codes(execution),
        rotulos=labels,
        pode_retomar=found.status is E.TRAVADO and found.tentativas_retry < found.max_retries,
        pode_reprocessar=found.status in OVER and found.por_status[DocumentStatus.ERRO] > 0,
        eta_segundos=None if eta is None else eta.total_seconds(),
        custos=await retoma.costs.of_batch(execution),
    )


def _look(
    tx: Transaction, execution: int
) -> tuple[Execution, list[tuple[str, int, Any]], dict[str, int]]:
    """Read all of it at one instant, so that the numbers add up."""
    return (
        store.executions.get_execution(tx, execution),
        store.executions.holds_of(tx, execution),
        store.documents.count_labels(tx, execution),
    )


def _moves(holds: Sequence[tuple[str, int, Any]]) -> bool:
    """Whether the execution ends by itself: there is no estimate where everything left is held."""
    return not holds or any(why in MOVING for why, _, _ in holds)


def _summarize(found: Execution) -> Said:
    match found.status:
        case E.PENDENTE:
            return say("Not started yet.")
        case E.EM_ANDAMENTO:
            return say("In progress.")
        case E.CONCLUIDO:
            return say("Every document has ended.")
        case E.TRAVADO:
            return say("Nothing has moved for five minutes: resume it where it stopped.")
        case E.ERRO:
            return say(
                "It was resumed {n} times and did not move: an admin may resume it,"
                " or what failed can be tried again.",
                n=found.tentativas_retry,
            )


def _describe_block(found: Execution, language: Language) -> Blocked | None:
    code = found.bloqueio_codigo
    if code is None:
        return None
    return Blocked(
        codigo=code,
        mensagem=meaning_of(code, language),
        palavras=found.bloqueio_mensagem,
        cura=tell(CURES[code], language),
        desde=found.bloqueada_em,
    )


def _describe_hold(why: str) -> Said:
    sort, _, name = why.partition(":")
    match sort:
        case "running":
            return say("being worked on")
        case "lost":
            return say("their runner is silent: another takes them over")
        case "backoff":
            return say("failed, and wait to be tried again")
        case "pause":
            return say("paused")
        case "parked":
            return say("wait for a person: {why}", why=MEANINGS.get(name, name))
        case "breaker":
            return say("the service {name} is down: tried again by itself", name=name)
        case "budget":
            return say("the budget is spent")
        case "limit":
            return say("the same content is being classified")
        case "line":
            return say("waiting in the queue")
        case "no_runner":
            return say(
                "no runner is alive that could take them: start one with `retoma runner`"
            )
        case _:
            return say("held back by {gate}", gate=why)
