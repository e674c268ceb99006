"""A process of its own that uses a vault: `run_vault put|rotate URL [ROW]`."""

import asyncio
import sys

from retoma.secret import Secret
from tests.vault.helpers import slot, vault_at


async def main(what: str, url: str, row: str = "") -> None:
    async with vault_at(url) as vault:
        if what == "put":
            await vault.put(slot(row), Secret(f"CANARY-of-{row}"), actor="child")
        else:
            print((await vault.rotate(actor="child")).sealed)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
