"""Name the statements of this application and read its rows."""

import json
from typing import Annotated, Any, Final

from retoma.apps.documents.model import Label, ProjectRules
from retoma.codec import encode
from retoma.db.rows import read_json
from retoma.db.statements import Statements
from retoma.toolkit.readers.rules import Ocr

SQL: Final = Statements("retoma.apps.documents.sql")


def rules_from(value: Any) -> ProjectRules:
    told = read_json(value)
    labels = tuple(Label(**each) for each in told.pop("labels"))
    ocr = Ocr(told.pop("ocr", Ocr.NEVER))
    return ProjectRules(labels=labels, ocr=ocr, **told)


StoredRules = Annotated[ProjectRules, rules_from]  # a column of json


def rules_text(rules: ProjectRules) -> str:
    """Without what an older release does not know, where it says nothing."""
    told = json.loads(encode(rules))
    if rules.ocr is Ocr.NEVER:
        del told["ocr"]
    return encode(told)
