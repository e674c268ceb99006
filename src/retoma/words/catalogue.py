"""A reader of gettext's .po files: msgid and msgstr, as text. Read once, when somebody needs it."""

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources

from retoma.words import Language


@cache
def catalogue(language: Language) -> dict[str, str]:
    """What each English text is in this language."""
    file = resources.files("retoma.words") / f"{language}.po"
    return {
        msgid: msgstr for msgid, msgstr in entries(file.read_text(encoding="utf-8")) if msgid
    }


def entries(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of a .po file, in order; a text may go on over several quoted lines."""
    parts: dict[str, str] = {}
    word = ""
    for line in [*text.splitlines(), "msgid"]:
        first, _, rest = line.partition(" ")
        quoted = rest if first in ("msgid", "msgstr") else line
        if first == "msgid" and "msgstr" in parts:
            yield parts["msgid"], parts["msgstr"]
            parts = {}
        if first in ("msgid", "msgstr"):
            word = first
            parts[word] = ""
        if quoted.startswith('"'):
            parts[word] += str(json.loads(quoted))  # gettext escapes as JSON does
