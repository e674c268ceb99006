"""How rows of this room are asked for and read."""

import json
from collections.abc import Sequence
from typing import Any

from retoma.apps.documents.model import Label, ProjectRules
from retoma.apps.readers.rules import Ocr
from retoma.codec import encode
from retoma.db import Row, Statement, statement


def verb(name: str) -> Statement:
    return statement("retoma.apps.documents.sql", name)


def named(names: Sequence[str], row: Row) -> dict[str, Any]:
    return dict(zip(names, row, strict=True))


def json_of(value: Any) -> Any:
    """A json column, as either database gives it."""
    return json.loads(value) if isinstance(value, str) else value


def rules_from(value: Any) -> ProjectRules:
    told = json_of(value)
    labels = tuple(Label(**each) for each in told.pop("labels"))
    ocr = Ocr(told.pop("ocr", Ocr.NEVER))
    return ProjectRules(labels=labels, ocr=ocr, **told)


def rules_text(rules: ProjectRules) -> str:
    """Without what an older release does not know, where it says nothing."""
    told = json.loads(encode(rules))
    if rules.ocr is Ocr.NEVER:
        del told["ocr"]
    return encode(told)
