"""Texts in chunks, by rules that can be read here, and the hash under which a chunk is embedded once.

A chunk ends where a paragraph ends, else a sentence, if that keeps it longer than half of what it may be;
else between two words; within a word only where a word alone is longer than a chunk may be. The next one
begins with the last words of the one before: as many as the overlap has room for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from retoma.engine.rules.errors import BadInput
from retoma.words import say

SMALLEST: Final = 8  # characters: less is no chunk of anything
LARGEST: Final = 100_000

PARAGRAPH: Final = re.compile(r"\n[^\S\n]*\n")
SENTENCE: Final = re.compile(r"[.!?…][\"'\u201d\u2019»)\]]*(?=\s)|[\u3002\uff01\uff1f]")
SPACE: Final = re.compile(r"\s+")
INK: Final = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Rule:
    """In characters. `overlap`: how much of a chunk the next one may say again."""

    size: int
    overlap: int

    def __post_init__(self) -> None:
        if not SMALLEST <= self.size <= LARGEST:
            told = {"least": SMALLEST, "most": LARGEST, "size": self.size}
            raise BadInput(say("a chunk has {least} to {most} characters, not {size}", **told))
        if not 0 <= self.overlap <= self.size // 2:
            told = {"most": self.size // 2, "size": self.size, "overlap": self.overlap}
            raise BadInput(
                say(
                    "chunks of {size} characters overlap by 0 to {most}, not by {overlap}",
                    **told,
                )
            )


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text` is what stands from `start` to `end`, without space around it."""

    ordinal: int
    start: int
    end: int
    text: str


def chunked(text: str, rule: Rule) -> list[Chunk]:
    """Every character that is no space is in a chunk; none where there is no such character."""
    return [
        Chunk(ordinal, start, end, text[start:end])
        for ordinal, (start, end) in enumerate(_spans(text, rule))
    ]


def content_hash(
    text: str, model: str, version: str, dims: int, input_type: str | None = None
) -> str:
    """Under which a text's vector is kept: the same text, model, version and dims, the same vector.

    `input_type`: what the text is for, where its vector depends on that."""
    told = sha256()
    of = () if input_type is None else (input_type,)
    for part in (model, version, str(dims), *of, text):
        data = part.encode("utf-8", "surrogatepass")
        told.update(len(data).to_bytes(8, "big"))
        told.update(data)
    return told.hexdigest()


def _spans(text: str, rule: Rule) -> Iterator[tuple[int, int]]:
    start = _next_ink(text, 0, len(text))
    done = 0  # up to where everything is in a chunk
    while start < len(text):
        end, within = _end(text, start, done, rule.size)
        if end is None:  # the next word has no room behind the overlap: it goes without
            start = _next_ink(text, done, len(text))
            continue
        yield start, end
        done = _next_ink(text, end, len(text))
        if done == len(text):
            return
        back = end - rule.overlap
        start = back if within else _word_start(text, back, done)


def _end(text: str, start: int, done: int, size: int) -> tuple[int | None, bool]:
    """Where a chunk ends, and whether that is within a word; None: nowhere behind `done`."""
    most = start + size
    if _next_ink(text, most, len(text)) == len(text):
        return _last_ink(text, start, len(text)), False
    half = start + size // 2
    for pattern in (PARAGRAPH, SENTENCE):
        found = [each.end() for each in pattern.finditer(text, half, most + 1)]
        fits = [_last_ink(text, start, end) for end in found if end <= most]
        if fits and fits[-1] > max(half, done):
            return fits[-1], False
    words = [each.start() for each in SPACE.finditer(text, start, most + 1)]
    if words and words[-1] > done:
        return words[-1], False
    if start < done and text[done - 1].isspace():
        return None, False
    return most, True


def _word_start(text: str, back: int, done: int) -> int:
    """The first word that begins at `back` or behind it; `done` where none does before that."""
    if back >= done or text[back - 1].isspace():
        return _next_ink(text, back, done)
    space = SPACE.search(text, back, done)
    return done if space is None else space.end()


def _next_ink(text: str, start: int, end: int) -> int:
    found = INK.search(text, start, end)
    return end if found is None else found.start()


def _last_ink(text: str, start: int, end: int) -> int:
    return start + len(text[start:end].rstrip())
