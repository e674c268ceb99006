"""A desk of access on a fresh database, and what its audit log says."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from retoma import db
from retoma.access import Access
from retoma.db import Database, adhoc, migrations
from retoma.engine.ports import Clock, Ids

AUDIT = adhoc("SELECT actor, verb, subject, details FROM audit ORDER BY id")
TABLES = ("people", "api_keys", "sign_in_links", "sign_in_sessions", "secrets", "audit")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = db.open(url)
    try:
        await migrations.upgrade(database)
        yield database
    finally:
        database.close()


@asynccontextmanager
async def desk(url: str, env_key: str | None = None) -> AsyncIterator[Access]:
    async with opened(url) as database:
        yield Access(database, Clock(), Ids(), env_key)


async def audit(access: Access) -> list[tuple[str, str, str, Any]]:
    rows = await access._database.read(lambda tx: tx.all(AUDIT))
    return [(who, verb, what, json.loads(said or "null")) for who, verb, what, said in rows]


async def everything(database: Database) -> dict[str, list[Any]]:
    """Every row there is, to see that nothing was changed."""
    return {
        table: await database.read(lambda tx, t=table: tx.all(adhoc(f"SELECT * FROM {t}")))  # type: ignore[misc]  # noqa: S608
        for table in TABLES
    }
