"""What an address may ask of a page, and what a form says. A field that was left empty says nothing."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from retoma.engine.rules.states import State
from retoma.web.wire import LARGEST, MARK
from retoma.words import say

B = TypeVar("B", bound=BaseModel)


def filled(shape: type[B], told: Mapping[str, Any]) -> B:
    """What a form says, held against what the API takes; a field left empty says nothing."""
    return shaped(
        shape, {name: each for name, each in told.items() if each not in (None, "", [])}
    )


def shaped(shape: type[B], told: Mapping[str, Any]) -> B:
    """The same, where a field left empty is emptied."""
    try:
        return shape.model_validate(told)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def _given(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise ValueError(say("has a character that cannot be looked for"))
    return None if value == "" else value


Blank = BeforeValidator(_given)
Number = Annotated[int, Field(ge=1, le=LARGEST)]
Name = Annotated[str, Field(max_length=100)]
Words = Annotated[str, Field(max_length=200)]
Fingerprint = Annotated[str, Field(pattern="^[0-9a-f]{12}$")]
Mark = Annotated[str, Field(max_length=MARK)]

# Bounds stand inside: nothing has no length.
StateOf = Annotated[State | None, Blank, Query()]
KindOf = Annotated[Name | None, Blank, Query()]
BatchOf = Annotated[Number | None, Blank, Query()]
CodeOf = Annotated[Name | None, Blank, Query()]
CheckpointOf = Annotated[Words | None, Blank, Query()]
TextOf = Annotated[Words | None, Blank, Query()]
FingerprintOf = Annotated[Fingerprint | None, Blank, Query()]
CursorOf = Annotated[Mark | None, Blank, Query()]
