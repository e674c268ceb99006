"""One document: what was read of it, the label it has and why, or what went wrong; and how a person skips it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from retoma.apps.documents import api, store
from retoma.apps.documents.api.execucoes import ResultShown, Reviewed, Skipped
from retoma.apps.documents.api.how import DocumentId, ExecutionId, read
from retoma.apps.documents.model import DocumentStatus, Label, message_in
from retoma.apps.documents.pages.looks import LOOKS, address
from retoma.apps.documents.store.documents import Wanted
from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.web.pages.asked import filled
from retoma.web.pages.kit import ALooker, Pages, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

SHOWN: Final = 20_000  # characters of a text; all of it is a file away
OPEN: Final = (DocumentStatus.PENDENTE, DocumentStatus.ERRO)  # what a person may skip


@dataclass(frozen=True, slots=True)
class DocumentScreen:
    """One document of an execution."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    execution: int
    document: int
    job: int

    @property
    def key(self) -> "DocumentScreen":
        return self

    @property
    def concern(self) -> Concern:
        return Concern(job=self.job)

    async def draw(self) -> Sequence[Region]:
        told, wanted, text = await read(self.pages.house, self._looked_at)
        document = api.execucoes.result_told(told, self.view.role)
        given: dict[str, Any] = {
            "document": document,
            "look": LOOKS[document.status],
            "failure": message_in(
                self.view.language, document.erro_codigo, document.erro_mensagem
            ),
            "execution": self.execution,
            "home": address(self.execution),
            "place": address(self.execution, self.document),
            "label": _label_of(wanted, document),
            "rules": wanted.rules,
            "skippable": document.status in OPEN,
            "retriable": document.status is DocumentStatus.ERRO
            or (
                document.status is DocumentStatus.PENDENTE and document.erro_codigo is not None
            ),
            "reviewable": document.rotulo is not None,
            "text": None if text is None else text[:SHOWN],
            "longer": text is not None and len(text) > SHOWN,
            "letters": len(text or ""),
            "shown": SHOWN,
        }
        return [
            drawn(
                f"document-{part}",
                self.pages.render(f"documents/document_{part}.html", self.view, **given),
            )
            for part in ("head", "why", "text")
        ]

    def _looked_at(self, tx: Transaction) -> tuple[dict[str, Any], Wanted, str | None]:
        told = store.documents.result_of(tx, self.execution, self.document)
        wanted = store.documents.wanted_of(tx, self.document)
        try:
            return told, wanted, store.documents.text_of(tx, self.execution, self.document)
        except NotFound:
            return told, wanted, None


def _label_of(wanted: Wanted, document: ResultShown) -> Label | None:
    """As the project described it when the execution began."""
    return next((each for each in wanted.rules.labels if each.name == document.rotulo), None)


async def document_screen(
    execution: ExecutionId, document: DocumentId, who: ALooker
) -> DocumentScreen:
    told = await read(who.house, lambda tx: store.documents.result_of(tx, execution, document))
    return DocumentScreen(who.pages, who.view, execution, document, told["job"])


AScreen = Annotated[DocumentScreen, Depends(document_screen)]


@routes.get("/classificador/execucao/{execution}/documento/{document}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    wanted = await read(who.house, lambda tx: store.documents.wanted_of(tx, screen.document))
    told = await read(
        who.house, lambda tx: store.documents.result_of(tx, screen.execution, screen.document)
    )
    return await who.page(
        screen,
        "documents/document.html",
        number=screen.document,
        place=address(screen.execution, screen.document),
        labels=wanted.rules.names,
        chosen=told["rotulo_revisado"] or told["rotulo"],
    )


@routes.get("/live/classificador/execucao/{execution}/documento/{document}")
async def live(_: Viewer, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)


@routes.get("/classificador/documento/{document}")
async def find(document: DocumentId, _: Viewer, who: ALooker) -> Response:
    """Wherever it stands: a copy names the first by its number alone."""
    wanted = await read(who.house, lambda tx: store.documents.wanted_of(tx, document))
    return RedirectResponse(address(wanted.execution, document), status_code=303)


@routes.post("/classificador/execucao/{execution}/documento/{document}/pular")
async def skip(
    execution: ExecutionId,
    document: DocumentId,
    actor: Operator,
    who: ALooker,
    request: Request,
) -> Response:
    """ "Pular": a person says so, and why."""
    body = filled(Skipped, {"motivo": (await form_of(request)).one("motivo")})
    await api.execucoes.skip_document(execution, document, body, actor, who.house)
    said = say("document {document} is skipped", document=document)
    return did(who, who.view.tell(said), address(execution, document))


@routes.post("/classificador/execucao/{execution}/documento/{document}/repetir")
async def retry(
    execution: ExecutionId, document: DocumentId, actor: Operator, who: ALooker
) -> Response:
    """ "Tentar de novo"."""
    await api.execucoes.retry_document(execution, document, actor, who.house)
    said = say("document {document} is tried again", document=document)
    return did(who, who.view.tell(said), address(execution, document))


@routes.post("/classificador/execucao/{execution}/documento/{document}/revisar")
async def review(
    execution: ExecutionId,
    document: DocumentId,
    actor: Operator,
    who: ALooker,
    request: Request,
) -> Response:
    """ "Salvar rótulo": confirmed, or corrected."""
    body = filled(Reviewed, {"rotulo": (await form_of(request)).one("rotulo")})
    told = await api.execucoes.review_document(execution, document, body, actor, who.house)
    right = told.rotulo == told.rotulo_revisado
    said = say("label confirmed") if right else say("label corrected")
    return did(who, who.view.tell(said), address(execution, document))
