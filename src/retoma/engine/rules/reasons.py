"""The reason that a person gives for an action."""

from retoma.engine.rules.errors import BadInput
from retoma.words import say

REASON = 500  # characters


def check_reason(why: object) -> str:
    """Return the reason without blanks around it. Raises BadInput where it is no text of 1 to REASON characters."""
    if not isinstance(why, str) or not why.strip() or len(why) > REASON or "\0" in why:
        raise BadInput(
            say(
                "a reason is a text of 1 to {most} characters, not {why!r}",
                most=REASON,
                why=why,
            )
        )
    return why.strip()
