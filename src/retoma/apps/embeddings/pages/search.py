"""The search box, and what is found: each chunk with the words that were asked for."""

from typing import Annotated, Final

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from retoma.apps.embeddings import service
from retoma.apps.embeddings.model import parse_pairs
from retoma.apps.embeddings.pages.presenters import SEARCH, address
from retoma.apps.embeddings.vectors import Found, Mode, Question
from retoma.apps.embeddings.vectors.search import LONGEST
from retoma.apps.embeddings.vectors.spans import pieces_of
from retoma.engine.rules.errors import Refused, Transient
from retoma.web.pages.asked import Blank, Name, Words
from retoma.web.pages.kit import ALooker, Looker
from retoma.web.pages.route import page_router
from retoma.web.sign_in import Viewer
from retoma.words import say

routes = page_router()

MOST: Final = 200  # collections that may be chosen of
HITS: Final = (5, 10, 25, 50)
LEAST: Final = 0.01  # what has nothing in common with a question is no answer to it

Asked = Annotated[Annotated[str, Field(max_length=LONGEST)] | None, Blank, Query()]
InCollection = Annotated[Name | None, Blank, Query()]
Prefix = Annotated[Words | None, Blank, Query()]
How = Annotated[Mode | None, Blank, Query()]
Pairs = Annotated[Words | None, Blank, Query()]
Most = Annotated[Annotated[int, Field(ge=1, le=100)] | None, Blank, Query()]


@routes.get("/embeddings/busca")
async def show(
    me: Viewer,
    who: ALooker,
    q: Asked = None,
    colecao: InCollection = None,
    prefixo: Prefix = None,
    quantos: Most = None,
    modo: How = None,
    metadados: Pairs = None,
) -> Response:
    known = await service.list_collections(who.house.retoma, limit=MOST)
    names = [each.name for each in known]
    chosen = colecao or (names[0] if names else "")
    found, why = None, None
    if q and chosen:
        wanted = {
            "text": q,
            "prefix": prefixo or "",
            "most": quantos or HITS[1],
            "least": LEAST,
            "mode": modo or Mode.HYBRID,
        }
        found, why = await _found(who, me.name, chosen, wanted, metadados or "")
    return who.answer(
        "embeddings/search.html",
        page=SEARCH,
        names=names,
        chosen=chosen,
        question=q or "",
        prefix=prefixo or "",
        most=quantos or HITS[1],
        mode=modo or Mode.HYBRID,
        metadata=metadados or "",
        choices=HITS,
        found=found,
        why=why,
        pieces_of=pieces_of,
        place=address(chosen),
    )


async def _found(
    who: Looker, actor: str, collection: str, wanted: dict[str, object], metadata: str
) -> tuple[Found | None, str | None]:
    """What was found, or why nothing could be looked for."""
    try:
        pairs = parse_pairs(metadata.split(","))
        question = Question(collection=collection, metadata=pairs, **wanted)  # type: ignore[arg-type]
        return await service.search_collection(who.house.retoma, question, actor=actor), None
    except Refused as error:
        return None, who.view.tell(error.args[0])
    except Transient:
        return None, who.view.tell(
            say("Who makes vectors of texts does not answer now. Try again.")
        )
