"""`python -m tests.apps.ads.run_orchestrator URL KEY_FILE NAME`: one orchestrator, until it is killed."""

import asyncio
import sys
from pathlib import Path

from retoma import Retoma
from retoma.apps.ads import APP
from retoma.apps.tools import Tools
from retoma.outbound import Outbound


async def main(url: str, key_file: str, name: str) -> None:
    out = Outbound(private=frozenset({"127.0.0.1"}))
    async with Retoma(url) as app, out:
        app.install(APP, Tools(app, out, key_file=Path(key_file)))
        await app.run(name=name, slots=20, tick=0.25)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
