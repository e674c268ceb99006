"""The page by which texts come in: files, a folder, or what is pasted; some at a time, each by its name.

The same name and text again is the document that is there: whatever was not answered is sent once more.
"""

from io import SEEK_END
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from starlette.responses import JSONResponse, Response

from retoma.access import Person
from retoma.apps.embeddings import store
from retoma.apps.embeddings.files import UnreadableFile, text_of
from retoma.apps.embeddings.model import (
    LONGEST_NAME,
    MOST_BYTES,
    MOST_DOCUMENTS,
    OVERLAP,
    SIZE,
    SIZES,
    NewDocument,
    checked_name,
    checked_rule,
)
from retoma.apps.embeddings.pages.looks import NEW, address, led, read, tools_of
from retoma.apps.embeddings.pages.search import MOST
from retoma.apps.embeddings.providers import build_provider
from retoma.apps.embeddings.steps import model_of
from retoma.apps.embeddings.store.documents import Added
from retoma.apps.uploads import in_thread, spooled
from retoma.engine.errors import BadInput
from retoma.engine.transaction import Transaction
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
    known = await read(
        who.house, lambda tx: store.collections.list_collections(tx, after="", n=MOST)
    )
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
    added = await _added(
        who,
        actor,
        wanted.colecao,
        (wanted.tamanho, wanted.sobreposicao),
        [NewDocument(each.nome, each.texto) for each in wanted.documentos],
    )
    return JSONResponse(_told(who, wanted.colecao, added), status_code=201)


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
            content = await in_thread(file.read)
            try:
                text = await text_of(house.retoma.isolate, content, nome)
            except UnreadableFile as error:
                refused = [{"nome": nome, "mensagem": who.view.tell(error.why)}]
                nothing = {"address": address(colecao), "novos": 0, "ja": 0}
                return JSONResponse({**nothing, "recusados": refused}, status_code=201)
    rule = (tamanho, sobreposicao)
    added = await _added(who, actor, colecao, rule, [NewDocument(nome, text)])
    return JSONResponse(_told(who, colecao, added), status_code=201)


@routes.post("/embeddings/nova/texto")
async def paste(actor: Operator, who: ALooker, request: Request) -> Response:
    """One text, as it was pasted."""
    form = await form_of(request)
    name, text = form.one("nome") or "", form.one("texto") or ""
    collection = form.one("colecao") or ""
    added = await _added(who, actor, collection, (SIZE, OVERLAP), [NewDocument(name, text)])
    for flaw in added.flaws:
        raise BadInput(flaw.message)
    return led(who, address(collection))


async def _added(
    who: Looker,
    actor: Person,
    collection: str,
    rule: tuple[int, int],
    given: list[NewDocument],
) -> Added:
    name, cut = checked_name(collection), checked_rule(*rule)
    tools = tools_of(who.house)
    model = model_of(tools.one(build_provider))
    follow = tools.settings.embeddings_webhook is not None

    def add(tx: Transaction) -> Added:
        store.collections.find_or_add(tx, name, model, cut, actor=actor.name)
        locked = store.collections.lock(tx, name)
        return store.documents.add(tx, locked.id, name, given, actor=actor.name, follow=follow)

    return await who.house.retoma.write(add)


def _told(who: Looker, collection: str, added: Added) -> dict[str, Any]:
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
