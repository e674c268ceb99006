"""What the pages of documents have in common: what moves them, how a status looks, where things stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from retoma.apps.documents.api.execucoes import ExecutionLine
from retoma.apps.documents.model import KIND, DocumentStatus, ExecutionStatus
from retoma.engine.store.cost import Total
from retoma.web.money import TotalShown
from retoma.web.pages.bars import parts_of
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View

D, E = DocumentStatus, ExecutionStatus

PAGE: Final = "/classificador"
CONCERN: Final = Concern(kinds=(KIND,), pause=1.0)
ANYONE: Any = None  # the roles were asked for by the route

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


def execution_given(line: ExecutionLine) -> dict[str, Any]:
    """What a template says of an execution."""
    return {
        "execution": line,
        "looks": LOOKS,
        "stands": STANDS,
        "bar": bar_of(line),
        "share": line.progresso / 100,
    }


def bar_of(line: ExecutionLine) -> list[tuple[str, float, float]]:
    """Its parts: the look of each, where it begins, how wide it is."""
    return parts_of(((LOOKS[each], line.por_status[each]) for each in PARTS), line.total)


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


def money(view: View, total: TotalShown) -> str:
    """In the currencies it was paid in; nothing, where nothing was paid."""
    return view.money(Total(usd=Decimal(total.usd), brl=Decimal(total.brl)))


def address(execution: int, document: int | None = None) -> str:
    below = "" if document is None else f"/documento/{document}"
    return f"{PAGE}/execucao/{execution}{below}"
