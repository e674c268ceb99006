"""Find what a document says: paths, fields, states, codes, environment names, numbers and queries. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

FENCE: Final = re.compile(r"\s*(```|~~~)")
HEADING: Final = re.compile(r"\s*#{1,6} ")
MARKER: Final = re.compile(
    r"^\s*(?:[-*+•]\s+)?(?:\*\*)?(?:\d+(?:\.\d+)*[.)]\s+)?(?:\[[ xX]\]\s*)?"
)
LINK: Final = re.compile(r"\[[^\]]*\]\(#[^)]*\)")  # of a table of contents
ITEM: Final = re.compile(r"\s*(?:[-*+•✅]|\d+[.)])\s+")
RULE: Final = re.compile(r"\s*\|[\s:|-]+\|?\s*")  # below the head of a table
WORD: Final = re.compile(r"[^\W_]")
CODE_SPAN: Final = re.compile(r"`([^`]+)`")
NUMBER: Final = re.compile(r"(?<![\w.#/-])\d+(?:[.,]\d+)*(?![\w-])")

# What a test can be searched for: names that mean nothing else.
NAMES: Final = re.compile(
    r"(?<![\w/.])/[A-Za-z_][\w{}:\[\]-]*(?:/[\w{}:\[\].-]+)*"  # /api/scrape/{id}
    r"|\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b"  # scrape_jobs, EM_ANDAMENTO, RETOMA_URL
    r"|\b[A-Z]{2,}[0-9]{2,}\b"  # ERROR104
    r"|\b[a-z]+[A-Z]\w*\b"  # lockedBy
)
STATE: Final = re.compile(r"\b[A-Z]{4,}\b")
WHOLE: Final = re.compile(r"`([A-Za-z_]\w*)`|\"([a-z_]\w*)\"\s*:")  # `queued`, "status":
# Words of SQL, protocols and headings: they name nothing of ours.
PLAIN: Final = frozenset(
    re.findall(
        r"\w+",
        "SELECT FROM WHERE INSERT INTO UPDATE DELETE VALUES RETURNING WITH HAVING DISTINCT FILTER "
        "ORDER GROUP LIMIT OFFSET JOIN LEFT RIGHT INNER OUTER EXISTS BETWEEN LIKE ILIKE CAST DESC SKIP LOCKED "
        "CREATE TABLE ALTER INDEX UNIQUE PRIMARY FOREIGN REFERENCES DEFAULT CHECK CASCADE NULL NULLIF COALESCE "
        "TRUE FALSE CASE WHEN THEN ELSE COUNT ROUND EPOCH EXTRACT INTERVAL TEXT BOOLEAN INTEGER BIGINT UUID JSONB "
        "TIMESTAMP TIMESTAMPTZ BEGIN COMMIT POST PATCH HTTP HTTPS JSON YAML HTML REST ",
    )
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line that promises something. `names` are what kept code or its test must mention."""

    number: int
    text: str
    names: frozenset[str]
    block: int  # the code block it stands in; 0: none


def lines_of(document: str) -> dict[int, str]:
    """Each line by its number, without what stands behind it."""
    return {n: line.rstrip() for n, line in enumerate(document.splitlines(), 1)}


def claims(document: str) -> dict[int, Line]:
    """The lines that need a row: all of a code block, each item of a list, each row of a table, and each line
    besides with a name, a state, code between backticks or a number. Contents and headings say nothing."""
    return {line.number: line for line in _claims(lines_of(document))}


def _claims(lines: Mapping[int, str]) -> Iterator[Line]:
    block, fenced = 0, False
    for number, text in lines.items():
        head = RULE.fullmatch(lines.get(number + 1, "")) is not None
        if FENCE.match(text):
            block, fenced = block + (not fenced), not fenced
            continue
        if not WORD.search(text):
            continue
        names = names_in(text)
        if fenced or (not head and not HEADING.match(text) and _says_something(text, names)):
            yield Line(number, text, names, block if fenced else 0)


def names_in(text: str) -> frozenset[str]:
    """Paths, fields, states, codes and environment names in a text."""
    found = {each.rstrip(".:") for each in NAMES.findall(text)}
    found |= {span or key for span, key in WHOLE.findall(text)}
    found |= {each for each in STATE.findall(text) if f"'{each}'" in text}
    return frozenset(found) - PLAIN


def _says_something(text: str, names: frozenset[str]) -> bool:
    plain = LINK.sub("", text)
    if not WORD.search(MARKER.sub("", plain)):
        return False
    if ITEM.match(plain) or plain.lstrip().startswith("|"):
        return True
    return bool(names or CODE_SPAN.search(plain) or NUMBER.search(plain))
