"""A submitter as a program: waits for its gate, does what it was told, logs each answer it got.

`python -m tests.chaos.run_submits '{"gate": …, "do": "keys" | "die" | "migrate", …}'`
"""

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from retoma import IdempotencyMismatch, Retoma
from retoma.engine.checker.effect_ledger import Accepted, LedgerWriter, append
from tests.chaos import jobs


async def main(told: dict[str, Any]) -> None:
    folder = Path(os.environ[jobs.FOLDER])
    async with jobs.from_environment() as app:
        if told["do"] != "migrate":
            await app.insights.counts()  # open: what follows is the submitting alone
        ready(folder)
        await gate(folder / told["gate"])
        await WAYS[told["do"]](app, folder, told)


def ready(folder: Path) -> None:
    (folder / f"ready-{os.getpid()}").touch()


async def gate(path: Path) -> None:
    while not path.exists():  # noqa: ASYNC110, ASYNC240 — the file is opened by another process
        await asyncio.sleep(0.005)


async def same_keys(app: Retoma, folder: Path, told: dict[str, Any]) -> None:
    """All at once: the same keys as the other processes, now and then with another payload."""
    rng, ledger = random.Random(told["seed"]), LedgerWriter(folder)

    async def one(key: str, payload: Any) -> None:
        try:
            job = await app.submit("chain", payload, key=key)
        except IdempotencyMismatch:
            append(folder / f"refused-{os.getpid()}.jsonl", {"key": key, "payload": payload})
        else:
            ledger.accepted(Accepted(job.id, payload, key))

    wanted = [f"key {n % told['keys']}" for n in range(told["submits"])]
    rng.shuffle(wanted)
    payloads = [{"steps": 1, "of": rng.choice([1, 1, 1, 2])} for _ in wanted]
    await asyncio.gather(*map(one, wanted, payloads))


async def submit_and_die(app: Retoma, folder: Path, told: dict[str, Any]) -> None:
    """Killed at the instant it was told that its last job is accepted."""
    ledger = LedgerWriter(folder)
    for n in range(told["submits"]):
        payload = {"steps": 1, "n": n}
        job = await app.submit("chain", payload)
        ledger.accepted(Accepted(job.id, payload))
    os.kill(os.getpid(), signal.SIGKILL)


async def migrate(app: Retoma, folder: Path, told: dict[str, Any]) -> None:
    """Then more new files, where a database is a file: they all come to each at the same time."""
    status = await app.upgrade()
    append(folder / f"migrated-{os.getpid()}.jsonl", {"applied": list(status.applied)})
    for n in range(told["files"] if app.url.startswith("sqlite:") else 0):
        async with Retoma(f"{app.url}-{n}") as another:
            await another.upgrade()


WAYS = {"keys": same_keys, "die": submit_and_die, "migrate": migrate}


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
