"""The page by which files come in: dropped, chosen, or of a folder of this server; then classified together.

Files go one by one to where the API takes them. What is asked for here are their names, and what they are
called by a manifest, which is held against all of them at once.
"""

import io
from typing import Annotated, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, StrictStr, ValidationError
from starlette.responses import JSONResponse, Response

from retoma.apps.documents import service
from retoma.apps.documents.bodies import NewExecution
from retoma.apps.documents.intake import (
    LARGEST_MANIFEST,
    MANIFEST,
    Incoming,
    called,
    read_manifest,
)
from retoma.apps.documents.model import MOST_DOCUMENTS
from retoma.apps.documents.pages.presenters import address
from retoma.apps.documents.pages.projects import MOST_CHOICES
from retoma.apps.documents.store.executions import NewDocument
from retoma.toolkit.uploads import in_thread
from retoma.web.pages.asked import Blank, Number
from retoma.web.pages.kit import ALooker
from retoma.web.pages.route import json_of, page_router
from retoma.web.replay import asked
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import Once

routes = page_router()


class NewExecutionWithManifest(NewExecution):
    """Documents that came in, and how a manifest calls them."""

    manifesto: Annotated[StrictStr, Field(max_length=LARGEST_MANIFEST)] | None = None


@routes.get("/classificador/nova")
async def show(
    _: Viewer, who: ALooker, projeto: Annotated[Number | None, Blank] = None
) -> Response:
    projects = await service.projects.list_projects(who.house.retoma, limit=MOST_CHOICES)
    return who.answer(
        "documents/new.html",
        projects=projects.items,
        chosen=projeto,
        folders=bool(who.house.settings.document_folders),
        manifest=MANIFEST,
        most=MOST_DOCUMENTS,
    )


@routes.post("/classificador/nova")
async def begin(actor: Operator, who: ALooker, request: Request, key: Once = None) -> Response:
    """ "Classificar": all of them or none; where to look is the answer."""
    body = await in_thread(_read, await json_of(request))
    documents = await in_thread(_name_documents, body)
    left = frozenset(body.sem)
    named = zip(body.documentos, documents, strict=True)
    execution, _ = await service.executions.add_execution(
        who.house.retoma,
        body.projeto_id,
        documents,
        name=body.nome,
        budget=body.orcamento,
        without=frozenset(after.code for before, after in named if before.codigo in left),
        actor=actor.name,
        once=asked(key, actor, "add_execution", body),
    )
    return JSONResponse({"address": address(execution)}, status_code=201)


def _read(sent: Any) -> NewExecutionWithManifest:
    try:
        return NewExecutionWithManifest.model_validate(sent)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def _name_documents(body: NewExecutionWithManifest) -> list[NewDocument]:
    """Give the documents the codes of their manifest, where they came with one."""
    if body.manifesto is None:
        return body.documents()
    manifest = read_manifest(io.BytesIO(body.manifesto.encode()))
    came = [
        Incoming(each.codigo, each.arquivo, each.sha256, each.tamanho)
        for each in body.documentos
    ]
    return [
        NewDocument(each.codigo, each.name, each.sha256, each.size)
        for each in called(came, manifest)
    ]
