"""The desk of access: keys for programs, links and sessions for browsers, names for both."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from retoma.access import model, store, token
from retoma.access.model import (
    ENVIRONMENT,
    NEWEST,
    KeySeen,
    NewKey,
    Person,
    PersonSeen,
    Role,
    Session,
    SessionSeen,
    Spot,
)
from retoma.access.token import Sort
from retoma.db import Database, DatabaseError, Transaction
from retoma.engine.ports import Clock, Ids
from retoma.engine.rules.duration import instant, seconds
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.secret import known
from retoma.words import say

ENV_KEY: Final = 32  # characters that a key from the environment has at least
OVERLAP: Final = 90 * 86_400.0  # seconds that two keys may be good side by side
INVITATION: Final = 7 * 86_400.0  # seconds that a link may be good at most
USE_PATIENCE: Final = (
    0.05  # seconds that a request waits for its key or session to be marked as used
)
REMEMBERED: Final = 10_000  # ids whose use was just told; more are forgotten all at once


class Access:
    """Who may come in. What is good when, the database's clock says."""

    def __init__(
        self, database: Database, clock: Clock, ids: Ids, env_key: str | None = None
    ) -> None:
        """`env_key`: a key that lies in the environment and nowhere else; it is an admin's."""
        if env_key is not None and not ENV_KEY <= len(env_key) <= token.LONGEST:
            raise BadInput(
                say(
                    "RETOMA_API_KEY has {has} characters, and a key that can be guessed opens"
                    " everything: give {least} to {most}, or none",
                    has=len(env_key),
                    least=ENV_KEY,
                    most=token.LONGEST,
                )
            )
        self._database = database
        self._clock = clock
        self._ids = ids
        if env_key is not None:
            known.add(env_key)  # whoever logs a request must not log it
        self._env_hash = None if env_key is None else token.digest(env_key)
        self._told: dict[str, float] = {}
        self._telling: set[asyncio.Task[None]] = set()

    # — keys —

    async def create_key(
        self,
        person_name: str,
        role: Role | str,
        *,
        label: str = "",
        expires: datetime | timedelta | str | None = None,
        actor: str,
    ) -> NewKey:
        """A key for a person, who is written down if nobody is called so; `expires`: a moment, or
        how long it is good."""
        write = partial(
            store.create_key,
            made=token.make(Sort.KEY, self._ids),
            name=model.person_named(person_name),
            role=model.role_named(role),
            label=model.label_given(label),
            expires=_moment_or_length(expires),
            actor=actor,
        )
        return await self._database.write(write, verb="create_key")

    async def keys(
        self, *, every: bool = False, after: Spot = NEWEST, limit: int = store.EVERY
    ) -> list[KeySeen]:
        """Newest first; those that were revoked too, if `every` one is wanted."""
        return await self._database.read(
            lambda tx: store.list_keys(tx, every=every, after=after, limit=limit)
        )

    async def key(self, id: str) -> KeySeen:  # noqa: A002 — what people call it
        """One key as it stands, also where it was revoked."""
        wanted = _id(id)
        return await self._database.read(lambda tx: store.get_key(tx, wanted))

    async def revoke_key(self, id: str, actor: str) -> None:  # noqa: A002 — what people call it
        """It opens nothing from now on."""
        wanted = _id(id)
        await self._database.write(
            lambda tx: store.revoke_key(tx, wanted, actor=actor), verb="revoke_key"
        )

    async def rotate_key(
        self,
        id: str,  # noqa: A002 — what people call it
        overlap: float | timedelta | str,
        actor: str,
    ) -> NewKey:
        """A new key with the rights of an old one, which is good until the overlap is over."""
        wanted, length = _id(id), _at_most(OVERLAP, seconds(overlap))
        made = token.make(Sort.KEY, self._ids)
        return await self._database.write(
            lambda tx: store.rotate_key(tx, wanted, made, length, actor=actor),
            verb="rotate_key",
        )

    async def any_keys(self) -> bool:
        """Whether anybody could come in with a key."""
        return self._env_hash is not None or await self._database.read(store.any_key)

    async def identify(self, token_given: str) -> Person | None:
        """Whose key this is; None, at the same cost, for whatever is not good."""
        given = token.read(Sort.KEY, token_given)
        by_environment = token.same(self._env_hash, token.digest(token_given[: token.LONGEST]))
        known = await self._database.read(lambda tx: store.find_key(tx, given))
        if by_environment:
            return Person(0, ENVIRONMENT, Role.ADMIN)
        if known is None:
            return None
        if known.stale:
            await self._tell_use(given.id, lambda tx: store.use_key(tx, given.id))
        return known.person

    # — people —

    async def people(self, *, after: str = "", limit: int = store.EVERY) -> list[PersonSeen]:
        """By name."""
        return await self._database.read(
            lambda tx: store.list_people(tx, after=after, limit=limit)
        )

    async def remove_person(self, person_name: str, actor: str) -> None:
        """Every key, link and session of theirs is over, at once. Not one's own: nobody could come
        in again."""
        name = model.person_meant(person_name)
        if name == actor:
            raise BadInput(say("nobody removes themselves; nothing was changed"))
        await self._database.write(
            lambda tx: store.remove_person(tx, name, actor=actor), verb="remove_person"
        )

    async def denied(self, person: Person, what: str) -> None:
        """Tell the audit log that somebody wanted more than they may."""
        told = model.told(what)
        await self._database.write(lambda tx: store.denied(tx, person, told), verb="deny")

    # — signing in —

    async def invite(
        self,
        person_name: str,
        role: Role | str,
        actor: str,
        *,
        expires: float | timedelta | str = store.LINK,
    ) -> str:
        """A link's token, good once and for a while; whoever is called so has this role from
        now on."""
        name, wanted = model.person_named(person_name), model.role_named(role)
        life = _at_most(INVITATION, seconds(expires))
        made = token.make(Sort.LINK, self._ids)
        return await self._database.write(
            lambda tx: store.invite(tx, made, name, wanted, life=life, actor=actor),
            verb="invite",
        )

    async def enter(self, link_token: str, agent: str) -> str | None:
        """The cookie of a new session for whoever comes first with a good link."""
        given = token.read(Sort.LINK, link_token)
        made = token.make(Sort.SESSION, self._ids)
        browser = model.told(agent)
        return await self._database.write(
            lambda tx: store.enter(tx, given, made, browser), verb="enter"
        )

    async def session(self, cookie: str) -> Session | None:
        """Who is signed in with this cookie; None for whatever is not good any more."""
        given = token.read(Sort.SESSION, cookie)
        known = await self._database.read(lambda tx: store.find_session(tx, given))
        if known is None:
            return None
        if known.stale:
            await self._tell_use(given.id, lambda tx: store.see_session(tx, given.id))
        return Session(known.person, token.csrf_of(cookie), given.id)

    async def sessions(
        self, *, after: Spot = NEWEST, limit: int = store.EVERY
    ) -> list[SessionSeen]:
        """Newest first."""
        return await self._database.read(
            lambda tx: store.list_sessions(tx, after=after, limit=limit)
        )

    async def end_session(self, id: str, actor: str) -> None:  # noqa: A002 — likewise
        wanted = _id(id)
        await self._database.write(
            lambda tx: store.end_session(tx, wanted, actor=actor), verb="end_session"
        )

    async def _tell_use(self, which: str, write: Callable[[Transaction], None]) -> None:
        """At most once a minute, by this process's own clock too; nobody is turned away because
        a use cannot be written down."""
        at = self._clock.now()
        if at < self._told.get(which, at):
            return
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told[which] = at + store.FRESH
        # Beside the request: behind a long write it would wait for as long as that takes.
        telling = asyncio.create_task(self._write_use(write))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)
        await asyncio.wait({telling}, timeout=USE_PATIENCE)

    async def _write_use(self, write: Callable[[Transaction], None]) -> None:
        with suppress(DatabaseError):
            await self._database.write(write, verb="tell_use", patience=0)


def _moment_or_length(value: Any) -> datetime | timedelta | None:
    match value:
        case None:
            return None
        case datetime():
            return instant(value)
        case _:
            return timedelta(seconds=seconds(value))


def _at_most(most: float, length: float) -> float:
    if length > most:
        raise BadInput(
            say(
                "{length:g} s is too long: at most {most:g} s ({days:g} days)",
                length=length,
                most=most,
                days=most / 86_400,
            )
        )
    return length


def _id(value: str) -> str:
    if not (value.isascii() and value.isalnum() and len(value) <= token.LONGEST):
        raise NotFound(say("{value!r} is no id of ours", value=value[: model.NAME]))
    return value
