"""A runner with one of two codes: `python -m tests.chaos.run_version '{"code": "old", "slots": 20}'`.

Both put all their jobs into one queue. The old code knows version 1 of a quote; the new one knows
version 2 and a new kind as well, and where it is asked to, prices a quote of version 1 by a step of its second
version.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from retoma import Context, Retoma
from retoma.engine.checker.effect_ledger import LedgerWriter
from tests.chaos import jobs

QUEUE = "quotes"


@dataclass(frozen=True, slots=True)
class Invoice:
    """A payload no old code has ever seen."""

    lines: list[str]
    due: str


def build(code: str, url: str, folder: Path) -> Retoma:
    app = Retoma(url)
    quotes = Quotes(code, LedgerWriter(folder), folder)
    app.job(name="quote", queue=QUEUE, retry=jobs.RETRY)(_plain(quotes.first))
    if code == "new":
        app.job(name="quote", version=2, queue=QUEUE, retry=jobs.RETRY)(_plain(quotes.second))
        app.job(name="invoice", queue=QUEUE, retry=jobs.RETRY)(_invoicing(quotes))
    return app


def _plain(story: Any) -> Any:
    async def run(ctx: Context, payload: dict[str, Any]) -> Any:
        return await story(ctx, payload)

    return run


def _invoicing(quotes: "Quotes") -> Any:
    async def run(ctx: Context, invoice: Invoice) -> str:
        return await quotes.invoice(ctx, invoice)

    return run


class Quotes:
    """The stories of one code."""

    def __init__(self, code: str, ledger: LedgerWriter, folder: Path) -> None:
        self._code = code
        self._ledger = ledger
        self._folder = folder

    async def first(self, ctx: Context, payload: dict[str, Any]) -> list[str]:
        price = 2 if self._code == "new" and payload.get("reprice") else 1
        return [
            await ctx.step("analyse", self._work, ctx, "analyse"),
            await ctx.step("price", self._work, ctx, "price", version=price),
            await ctx.step("send", self._held, ctx, payload.get("gate")),
        ]

    async def second(self, ctx: Context, payload: dict[str, Any]) -> list[str]:
        return [
            await ctx.step("all in one", self._work, ctx, "all in one"),
            await ctx.step("send", self._held, ctx, payload.get("gate")),
        ]

    async def invoice(self, ctx: Context, invoice: Invoice) -> str:
        return await ctx.step("write", self._work, ctx, "write", *invoice.lines)

    async def _work(self, ctx: Context, step: str, *_lines: str) -> str:
        self._ledger.effect(ctx, step, "start")
        await asyncio.sleep(0.005)
        value = f"{step} of job {ctx.job} by the {self._code} code"
        self._ledger.effect(ctx, step, "end", value)
        return value

    async def _held(self, ctx: Context, gate: str | None) -> str:
        """Only the first claim waits for the gate."""
        self._ledger.effect(ctx, "send", "start")
        async with asyncio.timeout(jobs.NOBODY_WAITS_LONGER):
            while gate and ctx.epoch == 1 and not (self._folder / gate).exists():  # noqa: ASYNC110 — another process opens it
                await asyncio.sleep(0.02)
        self._ledger.effect(ctx, "send", "end", self._code)
        return self._code


async def main(code: str, knobs: dict[str, Any]) -> None:
    app = build(code, os.environ[jobs.URL], Path(os.environ[jobs.FOLDER]))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.stop)
    async with app:
        await app.run(**knobs)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    told = json.loads(sys.argv[1])
    asyncio.run(main(told.pop("code"), told))
