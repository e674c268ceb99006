"""Why a request that fits the document of the API may be refused all the same: `python -m tests.web.rejections` writes the page."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.house.files import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "rejections.md"
AGAIN: Final = "python -m tests.web.rejections"

# By what the answer says, why no schema of JSON says it. A pattern is held against one whole reason.
REASONS: Final[Mapping[str, str]] = {
    "the cursor is not one of this list with this filter.*": "a cursor is what a page before gave",
    "has characters that cannot be seen": "which characters can be seen is a table of Unicode",
    "has a NUL character": "no text may have one: PostgreSQL keeps none",
    "has a character that cannot be looked for": "likewise",
    "has half a surrogate pair": "it is no text, though JSON can write it",
    "is not a whole number": "a schema takes `3.0` for one",
    "is not a text as it should be": "where a text or a whole number may stand",
    "is (less|more) than -?[0-9]+": "some readers of JSON tell numbers near 2⁶³ not apart",
    "no job .+ can be submitted here": "which kinds there are is known when the server starts",
    ".+ is no length of time.*": "text such as `1h30m`",
    ".+ is no cron line.*": "five fields, each with rules of its own",
    "a collection is called by .+": "as its address needs it",
    "chunks of [0-9]+ characters overlap by .+": "half of `size` at most",
    "a unit is a word such as .+": "as in `input_tokens`",
    "an exchange rate is from .+": "a decimal in a text",
    "is no address such as .+": "what an address is, only reading it tells",
    "is no host, or host:port": "likewise",
    "(host: )?(that )?is (no host|not the name of a host).*": "likewise the name of a host",
    "a budget is of one batch, one provider or one application": "one of three fields",
    "say which: (ids, or where|a job, or codes), and not both": "one of two fields",
    "the budget of a batch is for all of it, .+": "one field beside another",
    "the body has a collection and documents, and nothing else": "its documents are checked one by one",
    "whoever skips says why, and nobody else": "one field needs another",
    "a handle goes with adopt, and adopt with a handle": "likewise",
    "date_end is before date_start": "one field beside another",
    "a range of rounds goes up, .+": "likewise",
    "(\\w+, )*\\w+: cannot be nothing": "left out is as before, and null is nothing",
    ".+ mixes letters that look alike; .+": "which letters do is a table of Unicode",
    "that would be [0-9]+ missions, .+": "one field times another",
    "a season is a year, .+": "which years, the league says",
    "a price is a number, .+": "a decimal in a text",
    ".+ is a length of time from .+; nothing was changed": "each setting has a rule of its own",
    "labels given twice: .+": "no name twice",
    "the match does not add up; nothing was changed": "the rules of a match: docs/howto/matches.md",
    "[0-9]+ lines? (is|are) wrong; nothing was added": "a table in a text",
    "nothing is there to be read": "likewise",
    "the first line names (no column|columns).+": "a table",
    "files come as multipart/form-data, or one by one": "a file without its name",
    "the upload breaks off, or is no form with files": "a form without a file",
    "a person's name has only characters that can be seen, .+": "which characters can be seen is a table of Unicode",
    "a label needs a printable name of .+": "likewise",
    "until .+ is before since .+": "one field beside another",
    "document [0-9]+ has .+": "documents are checked one by one, so that each flaw names its document",
    "is said more than once": "`metadata` is a list of `KEY=VALUE`, and a key has one value",
    "a budget is an amount and a currency, such as .+": "a decimal and a currency in a text",
    ".+ is a (whole )?number from .+; nothing was changed": "each setting has a rule of its own",
    "that is not an address we understand": "what an address is, only reading it tells",
    "an exchange rate is a number, not .+": "a decimal in a text",
    "says nothing": "a text of blanks alone",
    "a file has no name": "a form without the name of a file",
    ".+ is too long: .+": "a length of time has a bound that follows from its unit",
    ".+ is too far away: from 1970 .+": "an instant has bounds that move with the clock",
    "the layouts are .+, not .+": "which layouts there are is a setting",
    "there is no such folder .+": "which folders there are is the operator's setting",
}  # fmt: skip


def unknown_reasons(problem: Mapping[str, Any]) -> list[str]:
    """Those of an answer that are not in the table."""
    flaws = [each["message"] for each in problem.get("errors", ())]
    told = flaws if flaws and not _is_known(problem["detail"]) else [problem["detail"]]
    return [each for each in told if not _is_known(each)]


def _is_known(reason: str) -> bool:
    return any(re.fullmatch(one, reason, re.DOTALL) for one in REASONS)


def lines() -> Iterator[str]:
    yield "# Requests that fit the document and are refused"
    yield ""
    yield "`/openapi.json` says what a request may be. What follows it cannot say; such a request is answered with 400 or 422 and one of these reasons."
    yield f"Written by `{AGAIN}`; the tests send what fits the document, and take no other reason."
    yield ""
    yield "| reason | why the document does not say it |"
    yield "|---|---|"
    for pattern, why in REASONS.items():
        yield f"| `{_shown(pattern)}` | {why} |"


def _shown(pattern: str) -> str:
    return re.sub(r"-?\[0-9\]\+|\.[*+]", "…", pattern).replace("|", " / ")


def written() -> str:
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
