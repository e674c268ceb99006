"""A vault on a fresh database, with its key file where the test can see it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from retoma.db import Database
from retoma.engine.ports import Ids
from retoma.secret import Secret
from retoma.vault import SecretSlot, Vault
from tests.access.aids import opened


@asynccontextmanager
async def vault_at(url: str, **how: Any) -> AsyncIterator[Vault]:
    async with opened(url) as database:
        yield Vault(database, Ids(), **how)


def slot(row: object = 1, table: str = "workers", column: str = "api_key") -> SecretSlot:
    return SecretSlot(table, column, str(row))


async def fill(vault: Vault, n: int) -> dict[str, str]:
    """So many secrets in one transaction; each by its row."""
    plain = {str(row): f"CANARY-{row:06d}-of-the-fill" for row in range(n)}
    sealer = await vault.sealer()

    def write(tx: Any) -> None:
        for row, text in plain.items():
            sealer.put(tx, slot(row), Secret(text), actor="test")

    await vault._database.write(write, verb="fill")
    return plain


async def all_of(vault: Vault, rows: Any) -> dict[str, str]:
    found = {row: await vault.get(slot(row)) for row in rows}
    return {row: secret.reveal() for row, secret in found.items() if secret is not None}


def key_file(database: Database, home: Path) -> Path:
    """The one that was made; there is only one."""
    found = [*home.rglob("*.key")]
    assert 1 == len(found), found
    return found[0]
