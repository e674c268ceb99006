# submit.py
"""Submit a batch and wait for it; a worker runs it."""

import asyncio

from project import app, quote


async def main() -> None:
    async with app:
        batch = await app.submit_many(quote, ["Notebook", "Telefone", "Mesa"], name="lote-42")
        progress = await batch.wait()
        print(f"{progress.done} of {progress.total} done")


asyncio.run(main())
