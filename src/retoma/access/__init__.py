"""Who may come in and what they may do: people, keys, sign-in links, sessions. Knows no web."""

from retoma.access.access import Access
from retoma.access.model import (
    KeySeen,
    NewKey,
    Person,
    PersonSeen,
    Role,
    Session,
    SessionSeen,
    Spot,
    is_of_access,
)

__all__ = [
    "Access",
    "KeySeen",
    "NewKey",
    "Person",
    "PersonSeen",
    "Role",
    "Session",
    "SessionSeen",
    "Spot",
    "is_of_access",
]
