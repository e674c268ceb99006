"""The handler of a scrape: one step per page, so that a killed worker resumes at the last page."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from retoma.engine import store
from retoma.engine.handlers.context import Context
from retoma.engine.rules.outcome import Snooze
from retoma.engine.rules.retry import Retry
from retoma.programs.worker.model import CODES, ScrapeRequest, ScrapeResult
from retoma.programs.worker.results import append, parts_file, results_file, write_whole
from retoma.programs.worker.scrapes import KIND
from retoma.programs.worker.worker import Worker

NOT_YET: Final = 0.5  # seconds between two checks of a session that resumes
RETRY: Final = Retry(attempts=6, base=0.5, cap=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A page in the parts file: where it ends, and where the next page is."""

    ads: int
    end: int
    next: str | None
    total: int | None = None


@dataclass(slots=True)
class Progress:
    """The progress of a scrape."""

    ads: int = 0
    end: int = 0
    at: str | None = None
    reported: int = field(default=0)  # batches


def register(worker: Worker) -> None:
    """Register the scrape handler with the worker's app."""

    async def read_page(request: ScrapeRequest, at: str | None, begin: int) -> Read:
        page = await worker.page(request, at)
        file = parts_file(worker.config.folder, request.id)
        loop = asyncio.get_running_loop()
        end = await loop.run_in_executor(None, append, file, begin, page.ads)
        return Read(ads=len(page.ads), end=end, next=page.next, total=page.total)

    async def write_results(request: ScrapeRequest, end: int) -> int:
        folder = worker.config.folder
        parts, results = parts_file(folder, request.id), results_file(folder, request.id)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, write_whole, parts, results, end, request.most)

    async def upload(request: ScrapeRequest) -> str | None:
        if worker.storage is None:
            return None
        database = await worker.retoma.database()
        at = await database.read(store.now)
        return await worker.storage.put(
            results_file(worker.config.folder, request.id), request.id, at
        )

    @worker.retoma.job(name=KIND, retry=RETRY, codes=CODES)
    async def scrape(ctx: Context, request: ScrapeRequest) -> Any:
        """Read all pages, then write them into one file."""
        if not worker.is_ready(request):
            return Snooze(NOT_YET)
        progress, page = Progress(), 0
        while page == 0 or progress.at is not None:
            read = await ctx.step(
                "page", read_page, request, progress.at, progress.end, key=str(page)
            )
            page += 1
            progress.ads, progress.end, progress.at = (
                progress.ads + read.ads,
                read.end,
                read.next,
            )
            await _report_progress(ctx, request, progress, read.total)
            if request.most is not None and progress.ads >= request.most:
                break
        count = await ctx.step("results", write_results, request, progress.end)
        parts_file(worker.config.folder, request.id).unlink(missing_ok=True)
        return ScrapeResult(ads_count=count, url=await ctx.step("upload", upload, request))


async def _report_progress(
    ctx: Context, request: ScrapeRequest, progress: Progress, total: int | None
) -> None:
    """Report progress after every full batch, and at the end."""
    batches = progress.ads // request.batch
    if batches == progress.reported and progress.at is not None:
        return
    progress.reported = batches
    target = total if request.most is None or total is None else min(total, request.most)
    share = None if not target else min(progress.ads / target, 1.0)
    await ctx.progress(share, f"{progress.ads} ads")
