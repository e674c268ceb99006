"""What a page was refused for, in the language of whoever reads it: it is kept as it was found, in English."""

import re
from typing import Any, Final

from retoma.words import Said, say

# As the schemas, the parsers and pydantic say it; what stands in braces is of the page.
SENTENCES: Final = (
    say("the page says {total} and lists {listed}"),
    say("is listed twice"),
    say("a match that is {status} has a score or events"),
    say("a match that is {status} needs one"),
    say("a match that is {status} needs them"),
    say("a match that is {status} is not awarded yet"),
    say("plays twice in this round"),
    say("plays in {match} of this round already"),
    say("this round has {size} matches, known so far: {n}"),
    say("{n} are known, and this round has {size}"),  # in rows of earlier versions
    say("{day} is no day of the season {season}"),
    say("is {days} days from {day}, the day on the page of its round"),
    say("a team cannot play against itself"),
    say("does not name both teams"),
    say("is {score}, and the goals make {goals}"),
    say("number {number} is there twice"),
    say("{name} is in no line-up of the home"),
    say("{name} is in no line-up of the away"),
    say("is there for substitutions, and only for them"),
    say("minute {minute} has no added time"),
    say("does not make a hundred"),
    say("is more than all shots"),
    say("holds characters that cannot be read"),
    say("was read by the wrong charset"),
    say("the year {year} is none of a season"),
    say("leads to no match of {site}"),
    say("no team of {league} is called {name}"),
    say("{wanted} was asked for, the page is of {found}"),
    say("has {n} bytes, and {most} are read at most"),
    say("is not {charset}"),
    say("is nested deeper than {most} elements"),
    say("Input should be less than or equal to {most}"),
    say("Input should be greater than or equal to {least}"),
    say("Input should be a valid integer"),
    say("Input should be a valid string"),
    say("Input should be a valid array"),
    say("Input should be an object"),
    say("Input should be a valid datetime{more}"),
    say("Input should have timezone info"),
    say("Input should be {choices}"),
    say("Field required"),
    say("Extra inputs are not permitted"),
    say("String should have at least {least} character"),
    say("String should have at most {most} characters"),
    say("String should match pattern {pattern}"),
    say("Tuple should have at least {least} items after validation, not {found}"),
    say("Tuple should have at least {least} item after validation, not {found}"),
    say("Tuple should have at most {most} items after validation, not {found}"),
)
# What stands for a status in a sentence about a match.
STATUSES: Final = {
    "scheduled": say("not begun"),
    "live": say("being played"),
    "finished": say("played to its end"),
    "postponed": say("put off"),
}
VALUE: Final = re.compile(r"\{(\w+)\}")
OURS: Final = "Value error, "  # pydantic's mark of a sentence of ours


def in_words(why: str) -> Said:
    """The same sentence, ready to be told; one that nobody knows stays as it is."""
    told = why.removeprefix(OURS)
    known = _known(told)
    if known is not None:
        return known
    why, found = _parted(told)
    inner = _known(why) if found else None
    if inner is None:
        return say("{why}", why=told)
    return say("{why}: {found}", why=inner, found=found)


def _parted(told: str) -> tuple[str, str]:
    """A sentence, and what was found there: it stands behind it in quotation marks; empty where it does not."""
    mark = told[-1:]
    place = told.find(f": {mark}", 1) if mark in ("'", '"') else -1
    if place < 0 or place + 3 >= len(told):
        return told, ""
    return told[:place], told[place + 2 :]


def _known(told: str) -> Said | None:
    for sentence in SENTENCES:
        values = _read_values(sentence.template, told)
        if values is not None:
            return _filled(sentence.template, values)
    return None


def _read_values(template: str, text: str) -> dict[str, Any] | None:
    """Return the values of a template that was filled in; None where the text was made from another.

    A pattern of several `.+?` would take the square of a long text.
    """
    first, *rest = VALUE.split(template)
    if not rest:
        return {} if text == first else None
    if not text.startswith(first) or not text.endswith(rest[-1]):
        return None
    values, place = {}, len(first)
    for name, literal in zip(rest[:-2:2], rest[1:-2:2], strict=True):
        end = text.find(literal, place + 1)
        if end < 0:
            return None
        values[name], place = text[place:end], end + len(literal)
    end = len(text) - len(rest[-1])
    return None if end <= place else {**values, rest[-2]: text[place:end]}


def _filled(template: str, values: dict[str, Any]) -> Said:
    """What stands in the list was marked there for the catalogue; of pydantic's own English nothing stays."""
    if "more" in values:
        values["more"] = ""
    if "choices" in values:
        values["choices"] = values["choices"].replace(" or ", ", ")
    if values.get("status") in STATUSES:
        values["status"] = STATUSES[values["status"]]
    said = Said(template.format(**values))
    said.template, said.values = template, values
    return said
