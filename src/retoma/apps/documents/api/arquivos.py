"""Files come in: one by one, many in a form, in an archive; each is kept by its content."""

from typing import Annotated, Any, Final

from fastapi import Query, Request
from pydantic import Field, StrictStr

from retoma.apps.documents import service
from retoma.apps.documents.api.wire import TakenShown, routes, show_taken
from retoma.web import AHouse, AVisit, Operator
from retoma.web.wire import Body

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
    if nome is None:
        media = request.headers.get("content-type", "")
        taken = await service.files.import_form(house.retoma, media, request.stream())
    else:
        taken = await service.files.import_file(house.retoma, nome, request.stream())
    return show_taken(taken, visit.language)


class Folder(Body):
    """A folder of the server, by its whole path."""

    pasta: Annotated[StrictStr, Field(min_length=1, max_length=1_000)]


@routes.post("/classificador/pastas")
async def take_folder(body: Folder, _: Operator, house: AHouse, visit: AVisit) -> TakenShown:
    """All files in a folder of this server, and below it: only where RETOMA_DOCUMENT_FOLDERS allows."""
    allowed = house.settings.document_folders
    taken = await service.files.import_folder(house.retoma, body.pasta, allowed=allowed)
    return show_taken(taken, visit.language)
