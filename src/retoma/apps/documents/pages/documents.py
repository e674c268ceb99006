"""One document: what was read of it, the label it has and why, or what went wrong; and how a person skips it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from retoma.apps.documents import service
from retoma.apps.documents.bodies import Reviewed, Skipped
from retoma.apps.documents.model import DocumentStatus
from retoma.apps.documents.pages.presenters import address, present_result
from retoma.web.pages.asked import Number, filled
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, serve_screen
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

SHOWN: Final = 20_000  # characters of a text; all of it is a file away
OPEN: Final = (DocumentStatus.PENDENTE, DocumentStatus.ERRO)  # what a person may skip


@dataclass(frozen=True, slots=True)
class DocumentScreen(Screen):
    """One document of an execution."""

    execution: int
    document: int
    job: int

    @property
    def concern(self) -> Concern:
        return Concern(job=self.job)

    async def draw(self) -> Sequence[Region]:
        found = await service.documents.read_document(
            self.pages.house.retoma,
            self.execution,
            self.document,
            with_stack=self.view.rules,
        )
        document, rules, text = found.result, found.rules, found.text
        given: dict[str, Any] = {
            **present_result(self.view, document),
            "execution": self.execution,
            "home": address(self.execution),
            "place": address(self.execution, self.document),
            # As the project described it when the execution began.
            "label": next(
                (each for each in rules.labels if each.name == document.rotulo), None
            ),
            "rules": rules,
            "skippable": document.status in OPEN,
            "retriable": document.status is DocumentStatus.ERRO or document.waits_for_person,
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


async def document_screen(execution: Number, document: Number, who: ALooker) -> DocumentScreen:
    found = await service.documents.get_document(who.house.retoma, execution, document)
    return DocumentScreen(who.pages, who.view, execution, document, found.job)


AScreen = Annotated[DocumentScreen, Depends(document_screen)]


@routes.get("/classificador/execucao/{execution}/documento/{document}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    retoma = who.house.retoma
    submitted = await service.documents.get_submitted(retoma, screen.document)
    found = await service.documents.get_document(retoma, screen.execution, screen.document)
    return await who.page(
        screen,
        "documents/document.html",
        number=screen.document,
        place=address(screen.execution, screen.document),
        labels=submitted.rules.names,
        chosen=found.rotulo_revisado or found.rotulo,
    )


serve_screen(
    routes, "/classificador/execucao/{execution}/documento/{document}", document_screen
)


@routes.get("/classificador/documento/{document}")
async def find(document: Number, _: Viewer, who: ALooker) -> Response:
    """Wherever it stands: a copy names the first by its number alone."""
    submitted = await service.documents.get_submitted(who.house.retoma, document)
    return RedirectResponse(address(submitted.execution, document), status_code=303)


@routes.post("/classificador/execucao/{execution}/documento/{document}/pular")
async def skip(
    execution: Number,
    document: Number,
    actor: Operator,
    who: ALooker,
    request: Request,
) -> Response:
    """ "Pular": a person says so, and why."""
    body = filled(Skipped, {"motivo": (await form_of(request)).one("motivo")})
    await service.documents.skip_document(
        who.house.retoma, execution, document, body.motivo, actor=actor.name
    )
    said = say("document {document} is skipped", document=document)
    return did(who, who.view.tell(said), address(execution, document))


@routes.post("/classificador/execucao/{execution}/documento/{document}/repetir")
async def retry(execution: Number, document: Number, actor: Operator, who: ALooker) -> Response:
    """ "Tentar de novo"."""
    await service.documents.retry_document(
        who.house.retoma, execution, document, actor=actor.name
    )
    said = say("document {document} is tried again", document=document)
    return did(who, who.view.tell(said), address(execution, document))


@routes.post("/classificador/execucao/{execution}/documento/{document}/revisar")
async def review(
    execution: Number,
    document: Number,
    actor: Operator,
    who: ALooker,
    request: Request,
) -> Response:
    """ "Salvar rótulo": confirmed, or corrected."""
    body = filled(Reviewed, {"rotulo": (await form_of(request)).one("rotulo")})
    right = await service.documents.review_document(
        who.house.retoma, execution, document, body.rotulo, actor=actor.name
    )
    said = say("label confirmed") if right else say("label corrected")
    return did(who, who.view.tell(said), address(execution, document))
