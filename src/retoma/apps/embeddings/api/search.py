"""What is nearest to a question."""

from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from retoma.apps.embeddings import service
from retoma.apps.embeddings.api.wire import routes
from retoma.apps.embeddings.model import MOST_PAIRS, MetadataValue, checked_name
from retoma.apps.embeddings.vectors import Mode, Question
from retoma.engine.rules.errors import Transient
from retoma.web import AHouse, Refusal, Viewer
from retoma.web.wire import LARGEST, Body, Shown
from retoma.words import say


class Search(Body):
    """A question, and where to look."""

    collection: Annotated[StrictStr, Field(examples=["livros"])]
    text: Annotated[StrictStr, Field(examples=["a casa na colina"])]
    limit: Annotated[StrictInt, Field(ge=1, le=100)] = 10
    mode: Annotated[
        Mode,
        Field(description="`hybrid`: by meaning and by words; `vector`: by meaning alone."),
    ] = Mode.HYBRID
    prefix: Annotated[
        StrictStr, Field(max_length=500, description="Only documents whose names begin so.")
    ] = ""
    documents: (
        Annotated[
            list[Annotated[StrictInt, Field(ge=1, le=LARGEST)]],
            Field(max_length=1_000, description="Only these."),
        ]
        | None
    ) = None
    metadata: Annotated[
        dict[str, MetadataValue],
        Field(
            max_length=MOST_PAIRS,
            description="Only documents that have all of these pairs.",
            default_factory=dict,
            examples=[{"autor": "Ana"}],
        ),
    ]
    min_score: Annotated[StrictFloat | StrictInt, Field(ge=-1, le=1)] | None = None


class HitShown(Shown):
    """A chunk, and where words of the question stand in it."""

    document: int
    name: str
    ordinal: int
    start: int
    end: int
    text: str
    score: float
    spans: list[tuple[int, int]]
    duplicates: int = Field(description="Other chunks that were found and say the very same.")
    metadata: dict[str, MetadataValue]


class FoundShown(Shown):
    """The best first."""

    hits: list[HitShown]
    searched: int = Field(description="In how many chunks.")
    left_out: int = Field(description="Documents that another model embedded: they come later.")
    unindexed: int = Field(
        description="Documents that are found by meaning alone, until their words are indexed."
    )


@routes.post("/api/embeddings/search")
async def search(body: Search, who: Viewer, house: AHouse) -> FoundShown:
    """By the model of the collection; 409 where the settings name another by now, or where the question costs
    money and a budget for it is spent."""
    question = Question(
        collection=checked_name(body.collection),
        text=body.text,
        most=body.limit,
        mode=body.mode,
        prefix=body.prefix,
        documents=body.documents,
        metadata=body.metadata,
        least=body.min_score,
    )
    try:
        found = await service.search_collection(house.retoma, question, actor=who.name)
    except Transient as error:
        said = say("who makes vectors of texts does not answer now: ask again later")
        raise Refusal("provider_away", said) from error
    return FoundShown.model_validate(found)
