"""What people read, in their own language.

The code speaks English; `pt_BR.po` is the one catalogue beside it. A sentence is `say`-ed where it
arises, with named values, and told where a person reads it: only there the language is known.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Language(StrEnum):
    """The languages people may choose with RETOMA_LANGUAGE, or have by their locale."""

    EN = "en"
    PT_BR = "pt_BR"


# What a template may call `{what}`. Its other values are names, and the same in every language.
NOUNS = (
    *(
        "job",
        "jobs",
        "batch",
        "batches",
        "batch name",
        "key",
        "correlation",
        "schedule",
        "kind",
    ),
    *("alert", "alerts", "events", "queue", "application", "provider", "model", "unit"),
    *("limits", "timeout", "stall", "cpu", "file", "schema retoma"),
    *("a metadata service", "loopback", "private", "shared by a carrier", "unspecified"),
    *("link-local", "multicast", "documentation", "reserved", "IPv4 in IPv6", "not an address"),
)


class Said(str):
    """A sentence in English that remembers what it was made of."""

    __slots__ = ("template", "values")

    template: str
    values: dict[str, Any]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Between processes the sentence alone travels: what stood in it may not be able to."""
        return str, (str(self),)


def say(template: str, /, **values: Any) -> Said:
    """A sentence for people: a template, as the catalogue has it, and what stands in it."""
    said = Said(template.format(**values) if values else template)
    said.template, said.values = template, values
    return said


def stored(said: Said) -> dict[str, Any]:
    """A sentence as plain values, to be stored and told later by `restored`, in whatever language.

    A sentence that stands in it is stored in the same way.
    """
    values = {
        name: stored(value) if isinstance(value, Said) else value
        for name, value in said.values.items()
    }
    return {"text": str(said), "template": said.template, "values": values}


def restored(told: Mapping[str, Any]) -> str:
    """What `stored` has kept; of values that were stored without a template, their `text`."""
    template, values = told.get("template"), told.get("values")
    if isinstance(template, str) and isinstance(values, dict):
        whole = {
            name: restored(value) if isinstance(value, Mapping) else value
            for name, value in values.items()
        }
        return say(template, **whole)
    return str(told.get("text", ""))


def tell(text: str, language: Language | None = None) -> str:
    """The same in the language of whoever reads it; what no catalogue knows stays as it is."""
    wanted = chosen() if language is None else language
    if wanted is Language.EN:
        return str(text)
    from retoma.words.catalogue import catalogue  # noqa: PLC0415 — English needs none

    known = catalogue(wanted)
    if not isinstance(text, Said):
        return known.get(text) or text
    template = known.get(text.template) or text.template
    values = {name: _value(name, value, wanted) for name, value in text.values.items()}
    return template.format(**values) if values else template


def _value(name: str, value: Any, language: Language) -> Any:
    """A sentence in a sentence is told too, also inside an error; so is a noun, called `what`."""
    if isinstance(value, BaseException) and value.args and isinstance(value.args[0], Said):
        value = value.args[0]
    if isinstance(value, Said) or (name == "what" and isinstance(value, str)):
        return tell(value, language)
    return value


def speak(template: str, /, **values: Any) -> str:
    """`say` and `tell` at once, for what is read here and now."""
    return tell(say(template, **values))


def chosen() -> Language:
    """RETOMA_LANGUAGE, else the locale, in the order in which every program asks."""
    for name in ("RETOMA_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if wanted := os.environ.get(name):
            return Language.PT_BR if wanted.lower().startswith("pt") else Language.EN
    return Language.EN
