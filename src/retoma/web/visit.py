"""One request as the house sees it: its trace, its correlation, the language of whoever asks."""

import re
from collections.abc import Iterable, Mapping
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
    return Visit(
        trace_id,
        _correlation(headers) or trace_id,
        _chosen(headers) or language_of(headers.get("accept-language", "")),
        traceparent,
    )


def _correlation(headers: Mapping[str, str]) -> str | None:
    """None too where it is refused: a long one must not be logged with the refusal."""
    given = headers.get("x-correlation-id", "")
    return given if PRINTABLE.fullmatch(given) else None


def _chosen(headers: Mapping[str, str]) -> Language | None:
    found = CHOSEN.search(headers.get("cookie", ""))
    return Language(found[1]) if found else None


def language_of(accepted: str) -> Language:
    """The best of what a browser would read; where it says nothing, as the house speaks."""
    ranked = sorted(_preferences(accepted), key=lambda each: -each[1])
    known = (LANGUAGES.get(tag[:2].lower()) for tag, weight in ranked if weight > 0)
    return next((each for each in known if each is not None), chosen())


def _preferences(accepted: str) -> Iterable[tuple[str, float]]:
    for each in accepted[:1_000].split(","):
        tag, _, rest = each.strip().partition(";")
        quality = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", rest)
        yield tag.strip(), float(quality[1]) if quality else 1.0
