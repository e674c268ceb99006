"""How rows of this room are asked for and read."""

import json
from collections.abc import Sequence
from typing import Any

from retoma.db import Row, Statement, statement


def verb(name: str) -> Statement:
    return statement("retoma.apps.matches.sql", name)


def named(names: Sequence[str], row: Row) -> dict[str, Any]:
    return dict(zip(names, row, strict=True))


def json_of(value: Any) -> Any:
    """A json column, as either database gives it."""
    return json.loads(value) if isinstance(value, str) else value
