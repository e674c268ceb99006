"""How rows of this room are asked for and read."""

from retoma.db import Statement, statement


def verb(name: str) -> Statement:
    return statement("retoma.apps.embeddings.sql", name)
