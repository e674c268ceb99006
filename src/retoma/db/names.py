"""Names of tables and columns as SQL: quoted by whoever knows how, never pasted."""

from retoma.db.database import Unfit
from retoma.words import say

LONGEST = 63  # bytes of a name on PostgreSQL; a longer one would be cut, and mean another


def quoted(*parts: str) -> str:
    """`"public"."ads"`, for both databases alike; Unfit where it can be no name."""
    from psycopg.sql import Identifier  # noqa: PLC0415 — a driver costs its import

    for part in parts:
        if not part or not part.isprintable() or len(part.encode()) > LONGEST:
            raise Unfit(say("a name in SQL has 1 to {most} printable bytes", most=LONGEST))
    return Identifier(*parts).as_string()
