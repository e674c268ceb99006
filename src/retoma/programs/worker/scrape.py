"""The story of a scrape: a step for each page, so that a killed worker goes on where it stood."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from retoma.engine import store
from retoma.engine.handlers.context import Context
from retoma.engine.rules.outcome import Snooze
from retoma.engine.rules.retry import Retry
from retoma.programs.worker.model import CODES, Found, Order
from retoma.programs.worker.results import append, parts_file, results_file, write_whole
from retoma.programs.worker.scrapes import KIND
from retoma.programs.worker.worker import Worker

NOT_YET: Final = 0.5  # seconds until a session that is coming back is looked at again
RETRY: Final = Retry(attempts=6, base=0.5, cap=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A page that lies in the file: where it ends, and where the next one is."""

    ads: int
    end: int
    next: str | None
    total: int | None = None


@dataclass(slots=True)
class Stand:
    """How far a scrape is."""

    ads: int = 0
    end: int = 0
    at: str | None = None
    told: int = field(default=0)  # batches


def register(worker: Worker) -> None:
    """Make scrapes a job of the worker's own house."""

    async def read_page(order: Order, at: str | None, begin: int) -> Read:
        page = await worker.page(order, at)
        file = parts_file(worker.config.folder, order.id)
        loop = asyncio.get_running_loop()
        end = await loop.run_in_executor(None, append, file, begin, page.ads)
        return Read(ads=len(page.ads), end=end, next=page.next, total=page.total)

    async def write_results(order: Order, end: int) -> int:
        folder = worker.config.folder
        parts, results = parts_file(folder, order.id), results_file(folder, order.id)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, write_whole, parts, results, end, order.most)

    async def upload(order: Order) -> str | None:
        if worker.storage is None:
            return None
        database = await worker.retoma.database()
        at = await database.read(store.now)
        return await worker.storage.put(
            results_file(worker.config.folder, order.id), order.id, at
        )

    @worker.retoma.job(name=KIND, retry=RETRY, codes=CODES)
    async def scrape(ctx: Context, order: Order) -> Any:
        """Page after page, then one file of all."""
        if not worker.is_ready(order):
            return Snooze(NOT_YET)
        stand, page = Stand(), 0
        while page == 0 or stand.at is not None:
            read = await ctx.step("page", read_page, order, stand.at, stand.end, key=str(page))
            page += 1
            stand.ads, stand.end, stand.at = stand.ads + read.ads, read.end, read.next
            await _tell(ctx, order, stand, read.total)
            if order.most is not None and stand.ads >= order.most:
                break
        count = await ctx.step("results", write_results, order, stand.end)
        parts_file(worker.config.folder, order.id).unlink(missing_ok=True)
        return Found(ads_count=count, url=await ctx.step("upload", upload, order))


async def _tell(ctx: Context, order: Order, stand: Stand, total: int | None) -> None:
    """With every full batch, and at the end."""
    batches = stand.ads // order.batch
    if batches == stand.told and stand.at is not None:
        return
    stand.told = batches
    wanted = total if order.most is None or total is None else min(total, order.most)
    share = None if not wanted else min(stand.ads / wanted, 1.0)
    await ctx.progress(share, f"{stand.ads} ads")
