"""What a validator found wrong, in our words: each value by its path, each reason a sentence."""

from typing import Any

from fastapi.exceptions import RequestValidationError

from retoma.web.problems import Flaw
from retoma.words import Said, say

MOST = 20  # flaws in one answer


def flaws_of(error: RequestValidationError) -> list[Flaw]:
    return [Flaw(_path(each["loc"]), _why(each)) for each in error.errors()[:MOST]]


def _path(parts: tuple[int | str, ...]) -> str:
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in parts)
    return path.removeprefix(".")[:200].encode("unicode_escape").decode()


def _why(error: dict[str, Any]) -> Said:
    """One reason; what it names are numbers and names, the same in every language."""
    ctx: dict[str, Any] = error.get("ctx") or {}
    match str(error["type"]):
        case "missing":
            return say("is missing")
        case "extra_forbidden":
            return say("is not known here")
        case "value_error" if isinstance(ctx.get("error"), ValueError):
            return _own(ctx["error"])
        case "enum" | "literal_error":
            return say("is none of {known}", known=ctx["expected"].replace(" or ", ", "))
        case "json_invalid":
            return say("is no JSON")
        case kind:
            return _out_of_bounds(kind, ctx) or _of_type(kind)


def _out_of_bounds(kind: str, ctx: dict[str, Any]) -> Said | None:
    """A number or a length that is too small or too large; None where the reason is another."""
    match kind:
        case "greater_than_equal":
            return say("is less than {least}", least=ctx["ge"])
        case "less_than_equal":
            return say("is more than {most}", most=ctx["le"])
        case "greater_than":
            return say("is not more than {least}", least=ctx["gt"])
        case "too_short":
            return say("has fewer than {least}", least=ctx["min_length"])
        case "too_long":
            return say("has more than {most}", most=ctx["max_length"])
        case "string_too_short":
            return say("is shorter than {least}", least=ctx["min_length"])
        case "string_too_long":
            return say("is longer than {most}", most=ctx["max_length"])
        case _:
            return None


def _of_type(kind: str) -> Said:
    """Reasons that say what it should have been."""
    begins = {
        "int": say("is not a whole number"),
        "float": say("is not a number"),
        "finite": say("is not a finite number"),
        "bool": say("is neither true nor false"),
        "string": say("is not a text as it should be"),
        "list": say("is not a list"),
        "dict": say("is not an object"),
        "model": say("is not an object"),
        "datetime": say("is not an instant such as 2026-01-31T12:00:00Z"),
        "date_": say("is not a day such as 2026-01-31"),
        "timezone": say("needs a time zone"),
    }
    found = (why for begin, why in begins.items() if kind.startswith(begin))
    return next(found, say("is not allowed"))


def _own(error: ValueError) -> Said:
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Said) else say("is not allowed")
