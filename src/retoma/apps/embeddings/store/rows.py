"""How rows of this room are asked for and read."""

from typing import Final

from retoma.db.statements import Statements

SQL: Final = Statements("retoma.apps.embeddings.sql")
