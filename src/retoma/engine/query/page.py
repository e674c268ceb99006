"""What every question needs: its statement, the bounds of a page, a time that is always there."""

from typing import Final

from retoma.db.statements import Statements
from retoma.engine.rules.errors import BadInput
from retoma.words import say

PAGE = 200  # rows at most


SQL: Final = Statements("retoma.engine.query.sql")


def checked(limit: int, what: str) -> int:
    if not 1 <= limit <= PAGE:
        raise BadInput(
            say("a page has 1 to {most} {what}, not {limit}", most=PAGE, what=what, limit=limit)
        )
    return limit
