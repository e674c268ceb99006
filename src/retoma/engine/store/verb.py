"""A verb of this room, read from its file; and text as its rows carry it."""

import json
from collections.abc import Callable
from typing import Final

from retoma.db.statements import Statements

# What json.dumps does with a string, without what it does around it.
quoted: Callable[[str], str] = json.encoder.encode_basestring_ascii


SQL: Final = Statements("retoma.engine.store.sql")
