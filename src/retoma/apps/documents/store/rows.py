"""Name the statements of this application and read its rows."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from retoma.apps.documents.model import Label, ProjectRules
from retoma.codec import encode
from retoma.db import Row, Statement, statement
from retoma.toolkit.readers.rules import Ocr

TIMES: Final = frozenset(
    {
        *("criado_em", "ultimo_heartbeat", "travado_em", "erro_em", "cancelada_em"),
        *("bloqueada_em", "ultimo_erro_em", "concluido_em", "revisado_em"),
    }
)


def verb(name: str) -> Statement:
    return statement("retoma.apps.documents.sql", name)


def read_row(names: Sequence[str], row: Row) -> dict[str, Any]:
    """Read a row by the names of its columns, with its times."""
    found = dict(zip(names, row, strict=True))
    return found | {name: time_of(found[name]) for name in TIMES & found.keys()}


def time_of(at: Any) -> datetime | None:
    """Read a time as either database gives it: the tables of SQLite as a number, its views as text."""
    if at is None or isinstance(at, datetime):
        return at
    if isinstance(at, int):
        return datetime.fromtimestamp(at / 1e6, UTC)
    return datetime.fromisoformat(at).replace(tzinfo=UTC)


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
