"""A verb of this room, read from its file; and text as its rows carry it."""

import json
from collections.abc import Callable

from retoma.db import Statement, statement

# What json.dumps does with a string, without what it does around it.
quoted: Callable[[str], str] = json.encoder.encode_basestring_ascii


def verb(name: str) -> Statement:
    return statement("retoma.engine.store.sql", name)
