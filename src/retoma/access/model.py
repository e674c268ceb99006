"""The nouns of access, and what may be in a name."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from retoma.access.names import is_mixed, skeleton
from retoma.engine.rules.errors import BadInput
from retoma.secret import STARS, redact_text
from retoma.words import say

AGENT: Final = (
    2_000  # characters of what a browser says of itself; more is looked through for nobody
)
NAME: Final = 200  # characters of a name or a label
ENVIRONMENT: Final = "RETOMA_API_KEY"  # whose name stands in the audit log for that key
# Who else stands there; a person of that name could hide behind it.
RESERVED: Final = frozenset(
    skeleton(each) for each in ("cli", "library", "engine", "system", ENVIRONMENT)
)


class Role(StrEnum):
    """What somebody may do; each may all that the ones before it may."""

    VIEWER = "viewer"  # look
    OPERATOR = "operator"  # submit, retry, cancel, resume
    ADMIN = "admin"  # people, keys, secrets, limits

    def allows(self, wanted: "Role") -> bool:
        """Whether who has this role may do what `wanted` is needed for."""
        return ORDER.index(self) >= ORDER.index(wanted)


ORDER: Final = tuple(Role)


def least(*roles: Role) -> Role:
    return min(roles, key=ORDER.index)


@dataclass(frozen=True, slots=True)
class Person:
    """Who is asking; the role is what this key or session of theirs allows."""

    id: int
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made. Its token is shown once and is nowhere else."""

    id: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody signed in with a browser; `csrf` is what a form of theirs must bring."""

    person: Person
    csrf: str = field(repr=False)
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSeen:
    """One person, with how many keys and sessions of theirs are good."""

    id: int
    name: str
    role: Role
    created_at: datetime | None
    keys: int
    sessions: int


class Spot(NamedTuple):
    """Where a key or a session stands among those that were made before and after it."""

    at: datetime
    id: str


NEWEST: Final = Spot(datetime(9999, 1, 1, tzinfo=UTC), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySeen:
    """One key as it stands, without what it is made of."""

    id: str
    person: str
    role: Role
    label: str
    created_at: datetime | None
    created_by: str
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    replaced_by: str | None
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSeen:
    """One session as it stands."""

    id: str
    person: str
    role: Role
    agent: str
    created_at: datetime | None
    seen_at: datetime | None
    expires_at: datetime | None


# What the audit log says of people, keys, links and sessions: for admins alone.
ACCESS_VERBS: Final = ("authz_denied", "key.", "person.", "session.")


def is_of_access(verb: str) -> bool:
    return verb.startswith(ACCESS_VERBS)


def role_named(value: object) -> Role:
    if value not in list(Role):
        raise BadInput(
            say("a role is one of {known}, not {value!r}", known=", ".join(Role), value=value)
        )
    return Role(str(value))


def person_meant(name: object) -> str:
    """What may be somebody's name already, whatever a new one must be."""
    return _shown(say("a person's name"), name, least=1)


def person_named(name: object) -> str:
    """A name that shows itself as it is, and is nobody's of ours."""
    checked = person_meant(name)
    if is_mixed(checked):
        raise BadInput(
            say(
                "{name!r} mixes letters that look alike; write it with those of one script",
                name=name,
            )
        )
    if skeleton(checked) in RESERVED:
        raise BadInput(
            say("{name!r} stands for ourselves in the audit log; take another name", name=name)
        )
    return checked


def label_given(label: object) -> str:
    return _shown(say("the label of a key"), label, least=0)


def told(text: str) -> str:
    """What came from outside, whatever it is, kept so that a person knows it again."""
    shown = redact_text(text)[:NAME] if len(text) <= AGENT else STARS
    return "".join(each if each.isprintable() else "?" for each in shown)


def _shown(thing: str, value: object, *, least: int) -> str:
    """Neither control characters nor what turns or hides its neighbours."""
    if not isinstance(value, str) or not least <= len(value) <= NAME:
        raise BadInput(
            say("{thing} has {least} to {most} characters", thing=thing, least=least, most=NAME)
        )
    if not value.isprintable() or value != value.strip():
        raise BadInput(
            say(
                "{thing} has only characters that can be seen, and no space around them",
                thing=thing,
            )
        )
    return value
