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

from retoma.apps.documents import api
from retoma.apps.documents.api.execucoes import DocumentSaid, NewExecution
from retoma.apps.documents.intake import (
    LARGEST_MANIFEST,
    MANIFEST,
    Incoming,
    called,
    read_manifest,
)
from retoma.apps.documents.model import MOST_DOCUMENTS
from retoma.apps.documents.pages.looks import address
from retoma.apps.documents.pages.projects import every_project
from retoma.toolkit.uploads import in_thread
from retoma.web.pages.asked import Blank, Number
from retoma.web.pages.kit import ALooker
from retoma.web.pages.route import json_of, page_router
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import Once

routes = page_router()


class Wanted(NewExecution):
    """Documents that came in, and how a manifest calls them."""

    manifesto: Annotated[StrictStr, Field(max_length=LARGEST_MANIFEST)] | None = None


@routes.get("/classificador/nova")
async def show(
    _: Viewer, who: ALooker, projeto: Annotated[Number | None, Blank] = None
) -> Response:
    return who.answer(
        "documents/new.html",
        projects=await every_project(who.house),
        chosen=projeto,
        folders=bool(who.house.settings.document_folders),
        manifest=MANIFEST,
        most=MOST_DOCUMENTS,
    )


@routes.post("/classificador/nova")
async def begin(actor: Operator, who: ALooker, request: Request, key: Once = None) -> Response:
    """ "Classificar": all of them or none; where to look is the answer."""
    wanted = await in_thread(_read, await json_of(request))
    named = await in_thread(_named, wanted)
    left = frozenset(wanted.sem)
    came = zip(wanted.documentos, named, strict=True)
    body = NewExecution(
        projeto_id=wanted.projeto_id,
        nome=wanted.nome,
        orcamento=wanted.orcamento,
        documentos=named,
        sem=[each.codigo for before, each in came if before.codigo in left],
    )
    made = await api.execucoes.add_execution(body, actor, who.house, Response(), key)
    return JSONResponse({"address": address(made.id)}, status_code=201)


def _read(told: Any) -> Wanted:
    try:
        return Wanted.model_validate(told)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def _named(wanted: Wanted) -> list[DocumentSaid]:
    if wanted.manifesto is None:
        return wanted.documentos
    manifest = read_manifest(io.BytesIO(wanted.manifesto.encode()))
    came = [
        Incoming(each.codigo, each.arquivo, each.sha256, each.tamanho)
        for each in wanted.documentos
    ]
    return [
        DocumentSaid(
            codigo=each.codigo, arquivo=each.name, sha256=each.sha256, tamanho=each.size
        )
        for each in called(came, manifest)
    ]
