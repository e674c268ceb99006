"""One request as the house sees it: its trace, its correlation, the language of whoever asks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

from retoma.engine.ports import Ids
from retoma.engine.run.submission import TRACEPARENT
from retoma.words import Language, chosen

VISIT: Final = "retoma.visit"  # where a scope keeps it
PRINTABLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?")
LANGUAGE: Final = "retoma_language"  # a cookie: what somebody chose on a page of ours
CHOSEN: Final = re.compile(rf"(?:^|;\s*){LANGUAGE}=(en|pt_BR)(?:;|$)")
QUALITY: Final = re.compile(r"\s*q=([01](?:\.\d{0,3})?)\s*")  # of a language that is accepted
LANGUAGES: Final = {"pt": Language.PT_BR, "en": Language.EN}


@dataclass(frozen=True, slots=True)
class Visit:
    """What is known before anybody has looked who it is."""

    trace_id: str
    correlation: str
    language: Language
    traceparent: str  # what a job that is submitted by it goes on with


def headers_of(scope: Scope) -> dict[str, str]:
    """By their names, in small letters; of several that are called the same the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def visit_of(headers: Mapping[str, str], ids: Ids) -> Visit:
    trace = TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    trace_id = trace[1] if trace else ids.new()
    traceparent = trace[0] if trace else f"00-{trace_id}-{trace_id[:16]}-01"
    # One that is refused is left out too: a long one must not be logged with the refusal.
    correlation = headers.get("x-correlation-id", "")
    language = CHOSEN.search(headers.get("cookie", ""))
    return Visit(
        trace_id,
        correlation if PRINTABLE.fullmatch(correlation) else trace_id,
        Language(language[1]) if language else language_of(headers.get("accept-language", "")),
        traceparent,
    )


def language_of(accepted: str) -> Language:
    """The best of what a browser would read; where it says nothing, as the house speaks."""
    weights: dict[str, float] = {}
    for each in accepted[:1_000].split(","):
        tag, _, rest = each.strip().partition(";")
        quality = QUALITY.fullmatch(rest)
        weights.setdefault(tag.strip(), float(quality[1]) if quality else 1.0)
    for tag in sorted(weights, key=lambda tag: -weights[tag]):
        known = LANGUAGES.get(tag[:2].lower())
        if known is not None and weights[tag] > 0:
            return known
    return chosen()
