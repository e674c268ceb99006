"""The words of a text as search knows them: the same for what is indexed and for what is asked.

Letters without accents, in lower case. A word of a question finds every word that begins as it does, but for
its last two letters: `multas` finds `multa` and `multado`. A number or code finds itself alone. That is no grammar of one language, and the same on
both databases; which hit comes first is decided by how rare its words are, and by its vector.
"""

import re
from typing import Final

from retoma.text import normalize

WORD: Final = re.compile(r"[^\W_]+")
MARKS: Final = re.compile("[\u0300-\u036f]+")
SHORTEST: Final = (
    3  # letters; shorter words are everywhere, and count only where there are no others
)
STEM: Final = 4  # letters that a word keeps at least
ENDING: Final = 2  # letters that may differ
MOST: Final = 32  # words of a question
LONGEST: Final = 100  # letters of a word that the index keeps


def indexed_words(text: str) -> str:
    """With one space between two words."""
    return " ".join(word[:LONGEST] for word in WORD.findall(_fold(text)))


def query_terms(question: str, collection: int, dialect: str) -> str | None:
    """What the index of this database is asked for; None: there is no word in the question."""
    found = list(dict.fromkeys(word[:LONGEST] for word in WORD.findall(_fold(question))))
    words = [word for word in found if len(word) >= SHORTEST] or found
    if not words:
        return None
    if dialect == "sqlite":
        terms = " OR ".join(_fts5(word) for word in words[:MOST])
        return f"collection:c{collection} AND words:({terms})"
    return f"[{', '.join(_tsquery(word) for word in words[:MOST])}]"


def _fts5(word: str) -> str:
    stem = _stem(word)
    return f'"{word}"' if stem is None else f'"{stem}"*'


def _tsquery(word: str) -> str:
    """As text in JSON; a word has letters and digits alone."""
    stem = _stem(word)
    return f"\"'{word}'\"" if stem is None else f"\"'{stem}':*\""


def _stem(word: str) -> str | None:
    """None: the word is asked for as it is, because it is short, or a number or code."""
    if len(word) < STEM or not word.isalpha():
        return None
    return word[: max(STEM, len(word) - ENDING)]


def _fold(text: str) -> str:
    folded = text.casefold()
    return folded if folded.isascii() else MARKS.sub("", normalize("NFKD", folded))
