"""What an address may ask of a page. A field that was left empty asks nothing."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator, Field

from retoma.engine.states import State
from retoma.web.wire import LARGEST, MARK
from retoma.words import say


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
