"""The page by which texts come in: files, a folder, or what is pasted; some at a time, each by its name.

The same name and text again is the document that is there: whatever was not answered is sent once more.
"""

from io import SEEK_END
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from starlette.responses import JSONResponse, Response

from retoma.apps.embeddings import service
from retoma.apps.embeddings.model import (
    LONGEST_NAME,
    MOST_BYTES,
    MOST_DOCUMENTS,
    OVERLAP,
    SIZE,
    SIZES,
    NewDocument,
    checked_name,
)
from retoma.apps.embeddings.pages.presenters import NEW, address, redirect_to
from retoma.apps.embeddings.pages.search import MOST
from retoma.apps.embeddings.store.documents import Added
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.uploads import in_thread, spooled
from retoma.web.pages.asked import Blank, Name
from retoma.web.pages.kit import ALooker, Looker
from retoma.web.pages.route import form_of, json_of, page_router
from retoma.web.sign_in import Operator, Viewer

routes = page_router()


class TextSaid(BaseModel):
    """A file, by its name."""

    model_config = ConfigDict(extra="forbid")

    nome: StrictStr
    texto: StrictStr


class TextsSaid(BaseModel):
    """Some texts of a collection, which is made where there is none of that name."""

    model_config = ConfigDict(extra="forbid")

    colecao: StrictStr
    tamanho: StrictInt = SIZE
    sobreposicao: StrictInt = OVERLAP
    documentos: Annotated[list[TextSaid], Field(min_length=1, max_length=MOST_DOCUMENTS)]


@routes.get("/embeddings/nova")
async def show(
    _: Viewer, who: ALooker, colecao: Annotated[Name | None, Blank] = None
) -> Response:
    known = await service.list_collections(who.house.retoma, limit=MOST)
    return who.answer(
        "embeddings/new.html",
        page=NEW,
        names=[each.name for each in known],
        chosen=colecao or "",
        size=SIZE,
        overlap=OVERLAP,
        sizes=SIZES,
        largest=MOST_BYTES >> 20,
    )


@routes.post("/embeddings/nova")
async def take(actor: Operator, who: ALooker, request: Request) -> Response:
    """Some files; what became of each is the answer."""
    wanted = _read(await json_of(request))
    added = await service.add_documents(
        who.house.retoma,
        wanted.colecao,
        [NewDocument(each.nome, each.texto) for each in wanted.documentos],
        size=wanted.tamanho,
        overlap=wanted.sobreposicao,
        actor=actor.name,
    )
    return JSONResponse(_present(who, wanted.colecao, added), status_code=201)


@routes.post("/embeddings/nova/arquivo")
async def take_file(
    actor: Operator,
    who: ALooker,
    request: Request,
    colecao: Annotated[str, Query(max_length=100)],
    nome: Annotated[str, Query(max_length=LONGEST_NAME)],
    tamanho: Annotated[int, Query()] = SIZE,
    sobreposicao: Annotated[int, Query()] = OVERLAP,
) -> Response:
    """One file that a reader must read; answered as `take` does."""
    checked_name(colecao)
    house = who.house
    async with spooled(request.stream()) as file:
        size = file.seek(0, SEEK_END)
        file.seek(0)
        async with house.room.hold(size):
            added = await service.add_file(
                house.retoma,
                colecao,
                nome,
                await in_thread(file.read),
                size=tamanho,
                overlap=sobreposicao,
                actor=actor.name,
            )
    return JSONResponse(_present(who, colecao, added), status_code=201)


@routes.post("/embeddings/nova/texto")
async def paste(actor: Operator, who: ALooker, request: Request) -> Response:
    """One text, as it was pasted."""
    form = await form_of(request)
    name, text = form.one("nome") or "", form.one("texto") or ""
    collection = form.one("colecao") or ""
    added = await service.add_documents(
        who.house.retoma, collection, [NewDocument(name, text)], actor=actor.name
    )
    for flaw in added.flaws:
        raise BadInput(flaw.message)
    return redirect_to(who, address(collection))


def _present(who: Looker, collection: str, added: Added) -> dict[str, Any]:
    """What became of some files, as the page's own script reads it."""
    return {
        "address": address(collection),
        "novos": len(added.new),
        "ja": len(added.already),
        "recusados": [
            {"nome": each.name, "mensagem": who.view.tell(each.message)} for each in added.flaws
        ],
    }


def _read(told: Any) -> TextsSaid:
    try:
        return TextsSaid.model_validate(told)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
