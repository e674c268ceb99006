"""Files come in: one by one, many in a form, in an archive; each is kept by its content."""

from typing import Annotated, Any, Final

from fastapi import Query, Request
from pydantic import Field, StrictStr

from retoma.apps.documents.api.how import routes
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.intake import Intake, Taken, folders_of
from retoma.apps.documents.model import meaning_of
from retoma.web import AHouse, AVisit, Operator
from retoma.web.wire import Body, Shown
from retoma.words import Language

FORM: Final = "multipart/form-data"
BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "content": {
            FORM: {"schema": {"type": "string", "format": "binary"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
        "required": True,
    }
}


class Arrived(Shown):
    """A document whose content is kept: an execution may name it."""

    codigo: str
    arquivo: str
    sha256: str
    tamanho: int


class LeftOutShown(Shown):
    """A file that was not taken, and why."""

    arquivo: str
    codigo_erro: str
    mensagem: str


class TakenShown(Shown):
    """What came in."""

    documentos: list[Arrived]
    recusados: list[LeftOutShown]


@routes.post("/classificador/arquivos", openapi_extra=BODY)
async def take_files(
    request: Request,
    _: Operator,
    house: AHouse,
    visit: AVisit,
    nome: Annotated[
        str | None, Query(max_length=1_000, description="Of the one file that is the body.")
    ] = None,
) -> TakenShown:
    """A file by its name, or many as multipart/form-data; a `.zip` is unpacked, `manifesto.csv` says
    which codes they have. Nothing is classified before an execution names it."""
    intake = Intake(Contents(house.retoma))
    if nome is None:
        media = request.headers.get("content-type", "")
        return taken_told(await intake.form(media, request.stream()), visit.language)
    return taken_told(await intake.file(nome, request.stream()), visit.language)


class Folder(Body):
    """A folder of the server, by its whole path."""

    pasta: Annotated[StrictStr, Field(min_length=1, max_length=1_000)]


@routes.post("/classificador/pastas")
async def take_folder(body: Folder, _: Operator, house: AHouse, visit: AVisit) -> TakenShown:
    """All files in a folder of this server, and below it: only where RETOMA_DOCUMENT_FOLDERS allows."""
    roots = folders_of(house.settings.document_folders)
    taken = await Intake(Contents(house.retoma), roots).folder(body.pasta)
    return taken_told(taken, visit.language)


def taken_told(taken: Taken, language: Language) -> TakenShown:
    return TakenShown(
        documentos=[
            Arrived(
                codigo=each.codigo, arquivo=each.name, sha256=each.sha256, tamanho=each.size
            )
            for each in taken.incoming
        ],
        recusados=[
            LeftOutShown(
                arquivo=each.name,
                codigo_erro=each.code,
                mensagem=meaning_of(each.code, language),
            )
            for each in taken.left_out
        ],
    )
