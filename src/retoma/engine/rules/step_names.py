"""What a story may call its steps, evidence and pools: what comes back as it was given."""

from functools import lru_cache

from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import REMOTE, StepId
from retoma.words import say


def step_id(name: object, version: object, key: object) -> StepId:
    """Refuse what would come back as something else, and so never be found again."""
    if type(name) is str and type(version) is int and type(key) is str:
        return _known_step_id(name, version, key)
    return _checked_step_id(name, version, key)


def named(name: object) -> str:
    if not isinstance(name, str) or not name or len(name) > 200 or not storable(name):
        raise BadInput(
            say(
                "a step or evidence needs a name of 1 to 200 characters, not {name!r}",
                name=name,
            )
        )
    return name


def storable(text: str) -> bool:
    plain = text.isascii() or text.encode("utf-8", "ignore").decode() == text
    return plain and "\0" not in text


@lru_cache(maxsize=4096)  # of plain text alone: another object could hold a whole attempt
def _known_step_id(name: str, version: int, key: str) -> StepId:
    return _checked_step_id(name, version, key)


def _checked_step_id(name: object, version: object, key: object) -> StepId:
    if type(version) is not int or version < 1:
        raise BadInput(
            say("a step's version is a number from 1, not {version!r}", version=version)
        )
    if not isinstance(key, str) or len(key) > 500 or not storable(key):
        raise BadInput(
            say("a step's key is a text of at most 500 characters, not {key!r}", key=key)
        )
    called = named(name)
    if called.startswith(REMOTE):
        raise BadInput(
            say(
                "step {name!r}: names that begin with {prefix!r} belong to ctx.remote",
                name=called,
                prefix=REMOTE,
            )
        )
    return StepId(called, version, key)
