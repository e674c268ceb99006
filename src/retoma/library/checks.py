"""Check what callers of the library hand in, before a database is asked."""

from retoma.engine.rules.errors import BadInput, NotFound
from retoma.engine.rules.states import State
from retoma.words import say


def check_id(what: str, id_: object) -> None:
    """Refuse what cannot be an id."""
    if not isinstance(id_, int) or not 0 < id_ < 2**63:
        raise NotFound(say("there is no {what} {id!r}", what=what, id=id_))


def state_of(state: State | str) -> State:
    """The state of that name."""
    try:
        return State(state)
    except ValueError:
        raise BadInput(
            say(
                "no state is called {state!r}; there are {known}",
                state=state,
                known=", ".join(State),
            )
        ) from None
