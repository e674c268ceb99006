"""Every question and every write about access. What changes something tells the audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from retoma.access import token
from retoma.access.model import (
    NEWEST,
    KeySeen,
    NewKey,
    Person,
    PersonSeen,
    Role,
    SessionSeen,
    Spot,
    least,
)
from retoma.access.names import skeleton
from retoma.access.token import Given, Made
from retoma.codec import decode, encode
from retoma.db import Row, Transaction, moment
from retoma.db.statements import Statements
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.store import now, tell
from retoma.words import say

LINK: Final = 3600.0  # seconds a sign-in link is good: sent, read, clicked
IDLE: Final = 12 * 3600.0  # seconds a session may rest: a working day with its night
LIFE: Final = 14 * 86_400.0  # seconds a session lasts at most
FRESH: Final = 60.0  # seconds within which a use is not told again
MINUTE: Final = 60.0  # seconds in which what somebody is denied is counted in one line
KEPT: Final = 30 * 86_400.0  # seconds that what is over stays to be looked at
EVERY: Final = 1_000_000_000  # rows of a list, for whoever wants no pages


SQL: Final = Statements("retoma.access.sql")


@dataclass(frozen=True, slots=True)
class Known:
    """Whom a token belongs to, and whether its use is to be told anew."""

    person: Person
    stale: bool


# — people —


def list_people(tx: Transaction, *, after: str, limit: int) -> list[PersonSeen]:
    return tx.all(SQL.list_people, into=PersonSeen, idle=-IDLE, after=after, most=limit)


def remove_person(tx: Transaction, name: str, *, actor: str) -> None:
    person = tx.one(SQL.remove_person, into=int, name=name)
    if person is None:
        raise NotFound(say("nobody here is called {name!r}", name=name))
    tx.run(SQL.end_all_of, person=person)
    _tell(tx, actor, "person.removed", name)


def _person_for_key(tx: Transaction, name: str, role: Role, *, actor: str) -> int:
    """Whoever is called so, new if nobody is; a key never allows more than its person may."""
    made = _added(tx, name, role, actor=actor)
    if made is not None:
        return made
    id_, has = _found(tx, name)
    if not has.allows(role):
        raise IllegalMove(
            say(
                "{name} is {has}: a key may not allow more, and none was made; invite {name} as"
                " {role} first",
                name=name,
                has=has,
                role=role,
            )
        )
    return id_


def _person_invited(tx: Transaction, name: str, role: Role, *, actor: str) -> int:
    """Whoever is called so has this role from now on."""
    made = _added(tx, name, role, actor=actor)
    if made is not None:
        return made
    id_, had = _found(tx, name)
    if tx.one(SQL.set_role, id=id_, role=role) is not None:
        _tell(tx, actor, "person.role", name, {"role": role, "was": had})
    return id_


def _added(tx: Transaction, name: str, role: Role, *, actor: str) -> int | None:
    made = tx.one(SQL.add_person, into=int, name=name, role=role)
    if made is not None:
        _check_twins(tx, name)
        _tell(tx, actor, "person.added", name, {"role": role})
    return made


def _check_twins(tx: Transaction, name: str) -> None:
    looks = skeleton(name)
    for other in tx.all(SQL.list_names, into=str):
        if other != name and skeleton(other) == looks:
            raise BadInput(
                say("{name!r} looks like {other!r}; take another name", name=name, other=other)
            )


def _found(tx: Transaction, name: str) -> tuple[int, Role]:
    found = tx.one(SQL.find_person, name=name)
    if found is None:
        raise NotFound(say("{name} was removed at this very moment; ask again", name=name))
    person, role = found
    return person, Role(role)


# — keys —


def create_key(
    tx: Transaction,
    made: Made,
    name: str,
    role: Role,
    *,
    label: str,
    expires: datetime | timedelta | None,
    actor: str,
) -> NewKey:
    until = _expiry(tx, expires)
    person = _person_for_key(tx, name, role, actor=actor)
    _add_key(tx, made, person, role, label, until, actor)
    _tell(tx, actor, "key.created", f"key {made.id}", _about(name, role, label, until))
    return NewKey(made.id, made.token)


def list_keys(tx: Transaction, *, every: bool, after: Spot, limit: int) -> list[KeySeen]:
    place = {"at": after.at, "id": after.id, "most": limit}
    return tx.all(SQL.list_keys, into=KeySeen, every=int(every), only=None, **place)


def get_key(tx: Transaction, key: str) -> KeySeen:
    place = {"at": NEWEST.at, "id": NEWEST.id, "most": 1}
    found = tx.one(SQL.list_keys, into=KeySeen, every=1, only=key, **place)
    if found is None:
        raise NotFound(say("there is no key {key}", key=key))
    return found


def revoke_key(tx: Transaction, key: str, *, actor: str) -> None:
    """Revoked already: the same answer again."""
    person = tx.one(SQL.revoke_key, into=str, id=key)
    if person is not None:
        _tell(tx, actor, "key.revoked", f"key {key}", {"person": person})
    elif tx.one(SQL.key_exists, id=key) is None:
        raise NotFound(say("there is no key {key}", key=key))


def rotate_key(tx: Transaction, key: str, made: Made, overlap: float, *, actor: str) -> NewKey:
    """A successor with the same rights, for as long as the old one was made for."""
    old = tx.one(SQL.key_to_replace, id=key)
    if old is None:
        raise NotFound(say("there is no key {key}", key=key))
    person, name, role, label, created_at, expires_at = old
    if tx.one(SQL.replace_key, id=key, successor=made.id, overlap=overlap) is None:
        raise IllegalMove(
            say(
                "key {key} is not good any more, or has a successor: nothing was changed; create"
                " a new one",
                key=key,
            )
        )
    until = None
    if expires_at is not None:
        until = now(tx) + (moment(expires_at) - moment(created_at))
    _add_key(tx, made, person, Role(role), label, until, actor)
    about = {**_about(name, role, label, until), "successor": made.id, "overlap": overlap}
    _tell(tx, actor, "key.rotated", f"key {key}", about)
    return NewKey(made.id, made.token)


def find_key(tx: Transaction, given: Given) -> Known | None:
    return _known(tx.one(SQL.find_key, id=given.id, fresh=-FRESH), given)


def use_key(tx: Transaction, key: str) -> None:
    tx.run(SQL.use_key, id=key, fresh=-FRESH)


def any_key(tx: Transaction) -> bool:
    return tx.one(SQL.any_key) is not None


def _add_key(
    tx: Transaction,
    made: Made,
    person: int,
    role: Role,
    label: str,
    until: datetime | None,
    actor: str,
) -> None:
    tx.run(
        SQL.add_key,
        id=made.id,
        person=person,
        role=role,
        label=label,
        hash=made.hash,
        actor=actor,
        expires=until,
    )


def _expiry(tx: Transaction, expires: datetime | timedelta | None) -> datetime | None:
    """A moment of the database's time that is still to come."""
    if expires is None:
        return None
    at = now(tx)
    until = at + expires if isinstance(expires, timedelta) else expires
    if until <= at:
        raise BadInput(
            say("{until} is past: the key would never be good, and was not made", until=until)
        )
    return until


def _about(name: str, role: str, label: str, until: datetime | None) -> dict[str, Any]:
    expires = None if until is None else until.isoformat()
    return {"person": name, "role": role, "label": label, "expires": expires}


# — sign-in links and sessions —


def invite(
    tx: Transaction, made: Made, name: str, role: Role, *, life: float, actor: str
) -> str:
    tx.run(SQL.forget_ended, kept=-KEPT)
    person = _person_invited(tx, name, role, actor=actor)
    tx.run(SQL.add_link, id=made.id, person=person, role=role, hash=made.hash, life=life)
    _tell(tx, actor, "person.invited", name, {"role": role, "link": made.id})
    return made.token


def enter(tx: Transaction, given: Given, made: Made, agent: str) -> str | None:
    """The cookie of a new session; None where the link is not good, or not any more."""
    if not token.same(tx.one(SQL.find_link, into=str, id=given.id), given.hash):
        return None
    used = tx.one(SQL.use_link, id=given.id)
    if used is None:
        return None
    person, role, name = used
    tx.run(
        SQL.add_session,
        id=made.id,
        person=person,
        role=role,
        hash=made.hash,
        agent=agent,
        life=LIFE,
    )
    _tell(tx, name, "session.begun", f"session {made.id}", {"link": given.id, "agent": agent})
    return made.token


def find_session(tx: Transaction, given: Given) -> Known | None:
    return _known(tx.one(SQL.find_session, id=given.id, idle=-IDLE, fresh=-FRESH), given)


def see_session(tx: Transaction, session: str) -> None:
    tx.run(SQL.see_session, id=session, fresh=-FRESH)


def list_sessions(tx: Transaction, *, after: Spot, limit: int) -> list[SessionSeen]:
    place = {"at": after.at, "id": after.id, "most": limit}
    return tx.all(SQL.list_sessions, into=SessionSeen, idle=-IDLE, **place)


def end_session(tx: Transaction, session: str, *, actor: str) -> None:
    """Ended already: the same answer again."""
    person = tx.one(SQL.end_session, into=str, id=session)
    if person is not None:
        _tell(tx, actor, "session.ended", f"session {session}", {"person": person})
    elif tx.one(SQL.session_exists, id=session) is None:
        raise NotFound(say("there is no session {session}", session=session))


def denied(tx: Transaction, person: Person, what: str) -> None:
    """One line for each person, route and minute, however often they ask."""
    line = tx.one(SQL.find_denied, ago=-MINUTE, actor=person.name, subject=what)
    if line is None:
        _tell(tx, person.name, "authz_denied", what, {"role": person.role, "count": 1})
        return
    id_, details = line
    about = decode(details)
    tx.run(SQL.count_denied, id=id_, details=encode({**about, "count": about["count"] + 1}))


def _known(row: Row | None, given: Given) -> Known | None:
    """What the row says, once the hash was compared; compared with something in any case."""
    hash_, allows, id_, name, may, good, stale = row or (None,) * 7
    if not token.same(hash_, given.hash) or not good:
        return None
    return Known(Person(id_, name, least(Role(allows), Role(may))), bool(stale))


def _tell(
    tx: Transaction,
    actor: str,
    what: str,
    subject: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    text = None if details is None else encode(dict(details))
    tell(tx, actor=actor, verb=what, subject=subject, details=text)
