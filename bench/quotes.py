"""Quotes, with the services of the sandbox in a process of their own: how many a second, and how near to ideal.

What is ideal is played, not guessed: every answer of the sandbox takes a time that is drawn before it is
asked for. The quotes of the lote are given to as many slots as the runner has, in their order; each
takes its analysis, then its search, then its pages, so many shops at a time; nothing else takes any time.
No runner could be done sooner in that order.
"""

import asyncio
import contextlib
import heapq
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import IO, Any, cast

from bench import ours
from bench.child import ROOT, Failed, call
from bench.compare import Figures, Measure
from bench.memory import told
from bench.ours import Address
from bench.places import Places

HERE = "bench.quotes"
LIMIT = 600.0  # seconds
SEED = 1
SHOPS_AT_ONCE = 4  # of one quote, as the knob has it
LATE = 1.0  # seconds more of a slow page
LISTENS = re.compile(r"http://127\.0\.0\.1:(\d+)")
PAGE = re.compile(r"/p/(\d+)-(\d+)$")
LOOK = 0.1
# So many times as slow as the sandbox's usual: a quote takes 45 s, which the document calls its baseline.
DOCUMENT = 6.0
AS_MANY_AS_YOU_LIKE = 1e6


# — in the parent —


def at_once(address: Address, quotes: int, slots: int) -> Measure:
    """Quotes a second where every service answers at once: our own time, and the sandbox's."""

    def measure(places: Places) -> Figures:
        with sandbox(pace=0) as port:
            made = _called(places, address, port=port, quotes=quotes, slots=slots)
        return quotes / made["seconds"], made["cpu"] * 1000 / quotes

    return measure


def near_ideal(address: Address, quotes: int, slots: int, pace: float) -> Measure:
    """The share of the ideal time that is reached, connections to the database, and memory."""

    def measure(places: Places) -> Figures:
        with tempfile.TemporaryDirectory(prefix="retoma-bench-") as folder:
            with sandbox(pace=pace, log=Path(folder)) as port:
                made = _called(places, address, port=port, quotes=quotes, slots=slots)
            ideal = played(chains(Path(folder), quotes), slots)
        share = 100 * ideal / made["seconds"]
        return share, made["connections"], made["megabytes"], quotes / made["seconds"]

    return measure


def _called(places: Places, address: Address, **how: float) -> dict[str, float]:
    url = address(places)
    made: dict[str, float] = call(f"{HERE}:quote", limit=LIMIT, url=url, **how)
    return made


@contextlib.contextmanager
def sandbox(*, pace: float, log: Path | None = None) -> Iterator[int]:
    """`retoma sandbox quotes`, for as long as the block lasts; its port."""
    command = [sys.executable, "-m", "retoma", "sandbox", "quotes", "--seed", str(SEED)]
    command += ["--pace", str(pace), *(() if log is None else ("--log", str(log)))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
        try:
            found = LISTENS.search(cast("IO[str]", program.stdout).readline())
            if found is None:
                raise Failed("the sandbox of quotes did not start")
            yield int(found[1])
        finally:
            program.kill()


# — what is ideal —


def chains(folder: Path, quotes: int) -> list[float]:
    """Seconds of each quote from its first call to its last, by what the services took."""
    from retoma.apps.quotes.sandbox import Catalogue, Page

    catalogue = Catalogue(SEED)
    slow = {
        offer.path
        for n in range(quotes)
        for offer in catalogue.expected(n).offers
        if offer.page is Page.SLOW
    }
    took = [0.0] * quotes
    for service in ("anthropic", "serpapi"):
        for line in _lines(folder / f"{service}.jsonl"):
            took[line["item"]] += line["seconds"]
    pages: dict[int, list[float]] = {}
    for line in _lines(folder / "shops.jsonl"):
        found = PAGE.search(line["path"])
        if found is not None:
            more = LATE if line["path"] in slow else 0.0
            pages.setdefault(int(found[1]), []).append(line["seconds"] + more)
    for n, each in pages.items():
        took[n] += played(each, SHOPS_AT_ONCE)
    tables = sum(line["seconds"] for line in _lines(folder / "fipe.jsonl"))
    vehicles = [n for n in range(quotes) if catalogue.is_vehicle(n)]
    for n in vehicles:  # their log does not say whose a call was
        took[n] += tables / len(vehicles)
    return took


def _lines(file: Path) -> Iterable[Mapping[str, Any]]:
    if not file.exists():
        return ()
    return (json.loads(line) for line in file.read_text().splitlines())


def played(lengths: Sequence[float], slots: int) -> float:
    """How long they take, each begun when the next slot is free."""
    free = [0.0] * slots
    for each in lengths:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


# — in a process of its own —


def quote(url: str, port: int, quotes: int, slots: int) -> dict[str, float]:
    return ours.run(_quote(url, port, quotes, slots))


async def _quote(url: str, port: int, quotes: int, slots: int) -> dict[str, float]:
    import anthropic  # noqa: F401 — two seconds that are not ours

    from retoma import Retoma
    from retoma.apps.quotes import APP, store
    from retoma.apps.quotes.sandbox import Catalogue
    from retoma.engine.rules.states import State
    from retoma.outbound import Outbound
    from retoma.toolkit.tools import Tools

    catalogue = Catalogue(SEED)
    wanted = [store.NewQuote(catalogue.describe(n)) for n in range(quotes)]
    out = Outbound(private=frozenset({"127.0.0.1"}))
    async with Retoma(url) as app, out:
        app.install(APP, Tools(app, out, settings=_settings(url, port)))
        for each in ("anthropic", "serpapi", "fipe"):
            await app.rates.set(f"quotes.{each}", AS_MANY_AS_YOU_LIKE)
        added = await app.write(lambda tx: store.add_lote(tx, wanted, actor="bench"))
        batch = await app.batches.get(added.lote or 0)
        began, cpu = perf_counter(), _cpu()
        run = asyncio.create_task(app.run(slots=slots))
        connections = await _until_finished(app, batch)
        took, used = perf_counter() - began, _cpu() - cpu
        done = (await batch.counts()).get(State.DONE, 0)
        app.stop()
        await run
    if done != quotes:
        raise Failed(f"{quotes - done} of {quotes} quotes have no price")
    return {
        "seconds": took,
        "cpu": used,
        "megabytes": told("VmHWM"),
        "connections": connections,
    }


def _settings(url: str, port: int) -> Any:
    from retoma.apps.quotes.sandbox import ANTHROPIC_KEY, SERPAPI_KEY
    from retoma.settings import Settings

    base = f"http://127.0.0.1:{port}"
    return Settings(
        database_url=url,
        anthropic_url=f"{base}/anthropic",
        anthropic_key=ANTHROPIC_KEY,
        serpapi_url=f"{base}/serpapi",
        serpapi_key=SERPAPI_KEY,
        fipe_url=base,
        screenshots="off",
        shop_hosts=f"127.0.0.1:{port}",
    )


async def _until_finished(app: Any, batch: Any) -> int:
    """At most so many connections to the database, ours for looking at them among them."""
    from retoma.db import adhoc

    postgres = app.url.startswith("postgresql:")
    count = adhoc("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    database = await app.database()
    most = 0
    while not (await batch.progress()).finished:
        if postgres:
            [(now,)] = await database.read(lambda tx: tx.all(count))
            most = max(most, now)
        await asyncio.sleep(LOOK)
    return most


def _cpu() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
