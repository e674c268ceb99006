"""What templates are given of executions, documents and labels: colours, bars, addresses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from retoma.apps.documents.model import KIND, DocumentStatus, ExecutionStatus
from retoma.apps.documents.service.status import ExecutionDetails
from retoma.apps.documents.store.documents import Result
from retoma.apps.documents.store.executions import ExecutionLine
from retoma.web.pages.bars import parts_of
from retoma.web.pages.kit import Pages
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View

D, E = DocumentStatus, ExecutionStatus

PAGE: Final = "/classificador"
CONCERN: Final = Concern(kinds=(KIND,), pause=1.0)
HELD: Final = (
    "pause",
    "parked",
    "lost",
    "no_runner",
)  # holds that a person can end by a resume

# A status is shown by its own name; this is the colour of it.
LOOKS: Final[Mapping[DocumentStatus, str]] = {
    D.PENDENTE: "waiting",
    D.PROCESSANDO: "running",
    D.CONCLUIDO: "done",
    D.ERRO: "dead",
    D.PULADO: "skipped",
}
STANDS: Final[Mapping[ExecutionStatus, str]] = {
    E.PENDENTE: "waiting",
    E.EM_ANDAMENTO: "running",
    E.CONCLUIDO: "done",
    E.TRAVADO: "stalled",
    E.ERRO: "dead",
}
# Of a bar, from left to right: what has ended, then what is at it.
PARTS: Final = (D.CONCLUIDO, D.PULADO, D.ERRO, D.PROCESSANDO)

PLOTTED: Final = 12  # labels that are drawn; the table beside has all
LETTERS: Final = 26  # of a label, in the drawing
LEFT: Final = 190.0  # where its bars begin
LONGEST: Final = 240.0  # of a bar
ROW: Final = 24.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A label, and how many have it."""

    name: str
    written: str
    n: int
    y: float
    width: float


def present_execution(line: ExecutionLine) -> dict[str, Any]:
    """What a template says of an execution."""
    parts = ((LOOKS[each], line.por_status[each]) for each in PARTS)
    return {
        "execution": line,
        "looks": LOOKS,
        "stands": STANDS,
        "bar": parts_of(parts, line.total),
        "share": line.progresso / 100,
    }


def present_results(
    pages: Pages, view: View, execution: int, results: Sequence[Result]
) -> dict[str, Markup]:
    """The rows of a table of documents, by their names."""
    return {
        f"document-{each.id}": pages.render(
            "documents/document_row.html",
            view,
            place=address(execution, each.id),
            **present_result(view, each),
        )
        for each in results
    }


def present_result(view: View, document: Result) -> dict[str, Any]:
    """What a template says of a document."""
    return {
        "document": document,
        "look": LOOKS[document.status],
        "failure": view.tell_stored(document.erro_mensagem or ""),
    }


def is_resumable(found: ExecutionDetails) -> bool:
    """Whether a person can make an execution go on: it is stuck, or waits for a person or a runner."""
    if found.status is E.EM_ANDAMENTO:
        return any(each.motivo.partition(":")[0] in HELD for each in found.motivos)
    return found.pode_retomar


def is_spent(found: ExecutionDetails) -> bool:
    """Whether only an admin can resume an execution: it was resumed as often as it may be."""
    return found.status in (E.TRAVADO, E.ERRO) and not found.pode_retomar


def bars_of(labels: Mapping[str, int]) -> Sequence[Bar]:
    """The most frequent labels, the most frequent first."""
    shown = list(labels.items())[:PLOTTED]
    most = max((n for _, n in shown), default=1)
    return [
        Bar(name, _short(name), n, at * ROW, n * LONGEST / most)
        for at, (name, n) in enumerate(shown)
    ]


def share_of(n: int, whole: int) -> float:
    """To the nearest percent, but neither nothing nor all of it before it is."""
    near = round(n / whole, 2)
    return near if 0 < near < 1 else n / whole


def _short(name: str) -> str:
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"


def address(execution: int, document: int | None = None) -> str:
    below = "" if document is None else f"/documento/{document}"
    return f"{PAGE}/execucao/{execution}{below}"
