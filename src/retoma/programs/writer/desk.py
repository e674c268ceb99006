"""The writer's desk: its profiles, their secrets, their targets and the way to their sources."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from retoma import db
from retoma.codec import encode
from retoma.db import Database, migrations
from retoma.engine.rules.errors import BadInput, NotFound, Permanent
from retoma.library import Retoma
from retoma.outbound import Outbound, Policy
from retoma.programs.writer import store
from retoma.programs.writer.introspect import look
from retoma.programs.writer.items import MOST
from retoma.programs.writer.model import (
    Asked,
    Column,
    Family,
    Profile,
    Report,
    origin_of,
)
from retoma.programs.writer.target import Target, report_of
from retoma.secret import Secret
from retoma.vault import SecretRef, SecretSlot, Vault
from retoma.words import say

ACTOR: Final = "writer"
TABLE: Final = "writer_profiles"
GIB: Final = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How much of a source is too much."""

    most_bytes: int = 4 * GIB
    seconds: float = 3600.0
    silence: float = 60.0  # seconds without a byte
    item: int = MOST  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A profile as somebody asks for it; what its columns are, the target says."""

    name: str
    table: str
    schema: str
    conflict_key: str
    json_path: str
    origins: Sequence[str]
    rest: str | None = None


class Desk:
    """Opens nothing until it is asked something."""

    def __init__(
        self,
        retoma: Retoma,
        vault: Callable[[Database], Vault],
        out: Outbound,
        caps: Caps | None = None,
    ) -> None:
        self.retoma = retoma
        self.caps = caps or Caps()
        self._vault = vault
        self._out = out
        self._databases: dict[str, Database] = {}

    async def close(self) -> None:
        await self._out.close()
        databases, self._databases = self._databases, {}
        loop = asyncio.get_running_loop()
        for each in databases.values():
            await loop.run_in_executor(None, each.close)

    async def ready(self) -> None:
        """Its own tables are there."""
        await migrations.ready(await self.retoma.database(), store.ROOM)

    # — profiles —

    async def profiles(self) -> list[Profile]:
        return await (await self.retoma.database()).read(store.list_profiles)

    async def named(self, name: str) -> Profile:
        found = [each for each in await self.profiles() if each.name == name]
        if not found:
            raise NotFound(say("there is no profile {name!r}", name=name))
        return found[0]

    async def find(self, asked: Asked) -> Profile | None:
        """Compared here, not in SQL: what a request names never gets near a statement."""
        return next((each for each in await self.profiles() if each.matches(asked)), None)

    async def add(
        self,
        wanted: Wanted,
        target: Secret | SecretRef,
        headers: Mapping[str, Secret | SecretRef],
        *,
        actor: str,
    ) -> Profile:
        """Look at the target, make room for our marks in it, write the profile down."""
        dsn = target.read() if isinstance(target, SecretRef) else target
        database = _opened(dsn)
        try:
            profile = await _made(database, wanted, tuple(sorted(headers)))
            policy = self._policy(profile)
            for each in profile.origins:
                # A name may mean something elsewhere: it is looked up when it is called.
                await self._out.check(policy, each, names=False)
            await Target(database, profile).make_room()
        except Permanent as error:
            raise BadInput(say("the target cannot be used: {error}", error=error)) from None
        finally:
            await asyncio.get_running_loop().run_in_executor(None, database.close)
        await self._write(profile, {"target": target, **_columns(headers)}, actor)
        return profile

    async def _write(
        self, profile: Profile, secrets: Mapping[str, Secret | SecretRef], actor: str
    ) -> None:
        own = await self.retoma.database()
        sealer = await self._vault(own).sealer()

        def write(tx: db.Transaction) -> None:
            store.put_profile(tx, profile, actor=actor)
            for column, value in secrets.items():
                sealer.put(tx, SecretSlot(TABLE, column, profile.name), value, actor=actor)

        await own.write(write, verb="put_profile")

    async def check(self, name: str) -> list[str]:
        """What has changed in the target since the profile was written down."""
        profile = await self.named(name)
        database = await self._database_of(profile)
        found = await look(database, profile.schema, profile.table, profile.conflict_key)
        return _differences(profile.columns, found)

    async def remove(self, name: str, *, actor: str) -> None:
        profile = await self.named(name)
        own = await self.retoma.database()
        await own.write(
            lambda tx: store.remove_profile(tx, name, actor=actor), verb="remove_profile"
        )
        vault = self._vault(own)
        for column in ("target", *_columns(dict.fromkeys(profile.headers, Secret("-")))):
            if (await vault.masked(SecretSlot(TABLE, column, name))).set:
                await vault.remove(SecretSlot(TABLE, column, name), actor=actor)

    # — where rows go, and where they come from —

    async def target(self, profile: Profile) -> Target:
        return Target(await self._database_of(profile), profile)

    async def put_headers(self, key: str, headers: Mapping[str, str], *, actor: str) -> None:
        """Those of one request, sealed until it has been done: they may carry a token."""
        vault = self._vault(await self.retoma.database())
        await vault.put(_headers_of(key), Secret(encode({**headers})), actor=actor)

    async def forget_headers(self, key: str) -> None:
        vault = self._vault(await self.retoma.database())
        if (await vault.masked(_headers_of(key))).set:
            await vault.remove(_headers_of(key), actor=ACTOR)

    async def source(
        self, profile: Profile, url: str, key: str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The bytes at an address, piece by piece; the headers of the request under this key come
        before the profile's own. Where they may be sent to, the profile alone says."""
        vault = self._vault(await self.retoma.database())
        headers: dict[str, str | Secret] = {}
        for name, column in zip(profile.headers, _names(profile.headers), strict=True):
            secret = await vault.get(SecretSlot(TABLE, column, profile.name))
            if secret is not None:
                headers[name.lower()] = secret
        given = None if key is None else await vault.get(_headers_of(key))
        if given is not None:
            told = json.loads(given.reveal())
            headers |= {name.lower(): Secret(value) for name, value in told.items()}
        return self._out.stream(self._policy(profile), url, headers=headers)

    async def report(self, profile: Profile, job: int) -> Report:
        """How far a job is, as its target says now."""
        found = await (await self.target(profile)).read(await self.mark_of(job))
        return Report() if found is None else report_of(*found)

    async def mark_of(self, job: int) -> str:
        """By which a target knows a job: ids of jobs are those of one database only."""
        return f"{await self.retoma.database_id()}/{job}"

    async def answers(self) -> None:
        """Return if every target does."""
        for each in await self.profiles():
            await (await self.target(each)).answers()

    async def _database_of(self, profile: Profile) -> Database:
        vault = self._vault(await self.retoma.database())
        dsn = await vault.get(SecretSlot(TABLE, "target", profile.name))
        if dsn is None:
            raise Permanent(
                say("profile {name} has no target", name=profile.name), code="config"
            )
        plain = dsn.reveal()
        if plain not in self._databases:
            self._databases[plain] = _opened(dsn)
        return self._databases[plain]

    def _policy(self, profile: Profile) -> Policy:
        parts = [urlsplit(each) for each in profile.origins]
        usual = {"http": 80, "https": 443}
        return Policy(
            purpose="writer",
            hosts=frozenset(str(each.hostname) for each in parts),
            schemes=frozenset(each.scheme for each in parts),
            ports=frozenset(each.port or usual[each.scheme] for each in parts),
            read=self.caps.silence,
            deadline=self.caps.seconds,
            most_bytes=self.caps.most_bytes,
            most_unpacked=self.caps.most_bytes,
            redirects=3,
        )


async def _made(database: Database, wanted: Wanted, headers: tuple[str, ...]) -> Profile:
    columns = await look(database, wanted.schema, wanted.table, wanted.conflict_key)
    profile = Profile(
        name=wanted.name,
        table=wanted.table,
        schema=wanted.schema,
        conflict_key=wanted.conflict_key,
        json_path=wanted.json_path,
        columns=columns,
        origins=tuple(dict.fromkeys(_origin(each) for each in wanted.origins)),
        headers=headers,
        rest=wanted.rest,
    )
    rest = next((each for each in columns if each.name == wanted.rest), None)
    if rest is not None and rest.family not in (Family.JSON, Family.TEXT):
        raise BadInput(
            say(
                "{column} is {type}: unknown fields need json", column=rest.name, type=rest.type
            )
        )
    if rest is not None:  # on SQLite JSON is text
        return replace(
            profile,
            columns=tuple(
                replace(each, family=Family.JSON, most=None) if each == rest else each
                for each in columns
            ),
        )
    return profile


def _origin(text: str) -> str:
    origin = origin_of(text)
    if origin is None or urlsplit(text).path not in ("", "/"):
        raise BadInput(
            say("a source is an origin such as https://storage.example.org, without a path")
        )
    return origin


def _opened(dsn: Secret) -> Database:
    url = dsn.reveal()
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not Path(parts.path[1:]).is_file():
        raise BadInput(say("the target is a SQLite file that does not exist"))
    return db.open(url)


def _headers_of(key: str) -> SecretSlot:
    return SecretSlot("writer_requests", "headers", key)


def _names(headers: Sequence[str]) -> list[str]:
    return [f"header {each}" for each in headers]


def _columns(headers: Mapping[str, Secret | SecretRef]) -> dict[str, Secret | SecretRef]:
    return dict(zip(_names(list(headers)), headers.values(), strict=True))


def _differences(known: Sequence[Column], found: Sequence[Column]) -> list[str]:
    before = {each.name: each.type for each in known}
    now = {each.name: each.type for each in found}
    gone = [say("{name} is gone", name=name) for name in before if name not in now]
    new = [say("{name} is new", name=name) for name in now if name not in before]
    other = [
        say("{name} was {before} and is {now}", name=name, before=before[name], now=now[name])
        for name in before
        if name in now and before[name] != now[name]
    ]
    return [*gone, *new, *other]
