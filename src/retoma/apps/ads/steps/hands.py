"""What the stories of this application reach for: rows, secrets, knobs, clients."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from retoma import db
from retoma.apps.ads import store
from retoma.apps.ads.clients import WorkerClient
from retoma.apps.ads.model import Proxy, Worker, Writer
from retoma.db import Row, Statement
from retoma.engine.handlers.context import Context
from retoma.engine.rules.errors import NotFound, Permanent, Transient
from retoma.engine.run.transaction import Transaction
from retoma.secret import Secret
from retoma.toolkit.tools import Tools
from retoma.vault import SecretSlot
from retoma.words import say

T = TypeVar("T")
UNCONFIRMED: Final = say(
    "Cancellation not confirmed"
)  # asked to stop, and not seen to: asked again
UNKNOWN: Final = say("Result unknown")  # of a scrape that nobody can name
HTTP: Final = re.compile(r"\b(?:HTTP|answered) (\d{3})\b")
UNHEARD: Final = "unheard"  # nobody could say what became of what was sent: asked again later


@dataclass(frozen=True, slots=True)
class Hands:
    """All that a story touches besides its context."""

    tools: Tools

    async def noted(self, ctx: Context, fn: Callable[[Transaction], object]) -> None:
        """What is seen while remote work is asked after: also when the story has ended, or is to.

        So it is no step; but who no longer holds the job notes nothing.
        """

        def note(tx: Transaction) -> None:
            if store.holds(tx, ctx.job, ctx.epoch):
                fn(tx)

        await self.tools.retoma.write(note)

    async def scrapes_on(self, worker: str, client: WorkerClient) -> bool:
        """Whether a scrape that was given up goes on there; it is stopped, if the worker answers."""
        for job_id in await self.read(lambda tx: store.left_scrapes(tx, worker)):
            try:
                await client.cancel_scrape(job_id)
                status = (await client.scrape(job_id)).status
            except (Transient, Permanent):
                return False  # it is away: what is asked of it next will say so
            if status in ("pending", "queued", "running", "paused"):
                return True
            forget = partial(store.forget_scrape, worker=worker, job_id=job_id)
            await self.tools.retoma.write(forget)
        return False

    async def worker_client(self, worker: str) -> WorkerClient:
        return WorkerClient(self.tools.out, await self.worker(worker))

    async def worker(self, worker: str) -> Worker:
        place = SecretSlot("ads_workers", "api_key", worker)
        row, key = await self._with_secret(place, store.SQL.get_worker, worker=worker)
        id_, name, url, storage_domain = row
        return Worker(id_, name, url, key or Secret(""), storage_domain)

    async def writer(self, writer: str) -> Writer:
        place = SecretSlot("ads_writers", "api_key", writer)
        row, key = await self._with_secret(place, store.SQL.get_writer, writer=writer)
        id_, name, url = row
        return Writer(id_, name, url, key or Secret(""))

    async def proxy(self, proxy: str) -> Proxy:
        place = SecretSlot("ads_proxies", "password", proxy)
        row, password = await self._with_secret(place, store.SQL.get_proxy, proxy=proxy)
        id_, name, host, port, username = row
        return Proxy(id_, name, host, port, username, password)

    async def _with_secret(
        self, place: SecretSlot, statement: Statement, **params: str
    ) -> tuple[Row, Secret | None]:
        """At one instant: a key is never sent to an address it was not given for."""
        vault = await self.tools.vault()
        row, secret = await vault.get_with(place, lambda tx: tx.one(statement, **params))
        if row is None:
            raise NotFound(say("there is no {what}", what=", ".join(params.values())))
        return row, secret

    async def knob(self, name: str) -> Any:
        return (await self.knobs(name))[0]

    async def knobs(self, *names: str) -> list[Any]:
        return await self.tools.retoma.knobs.values(*(f"ads.{name}" for name in names))

    async def read(self, fn: Callable[[db.Transaction], T]) -> T:
        return await (await self.tools.retoma.database()).read(fn)


def refusal_code(error: Transient | Permanent) -> str:
    """Of what waits for a person: the answer by its number, where there was one."""
    found = HTTP.search(str(error))
    return f"HTTP{found[1]}" if found else "CONFIG"


def error_wait(error: Transient | Permanent) -> float | None:
    return error.retry_after if isinstance(error, Transient) else None


async def heard(asking: Awaitable[T]) -> T:
    """An answer to what became of something; none is no news, and must not look like a failure."""
    try:
        return await asking
    except Transient as error:
        raise Transient(str(error), code=UNHEARD) from error
