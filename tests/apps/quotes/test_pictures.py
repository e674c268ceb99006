"""Pictures of accepted pages, by a real Chromium: nothing is run or fetched for them, and none costs a quote."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from retoma.apps.quotes.model import ProcessingCheckpoint as At
from retoma.chromium import MOST_HTML, Painter
from retoma.testing import crash_at
from tests.apps.quotes.aids import World, serving, world
from tests.apps.quotes.test_story import number
from tests.services.chromium import chromium_path

PNG = b"\x89PNG\r\n\x1a\n"
PIPE, OTHER = b"--remote-debugging-pipe", b"--type="  # the first process of a browser


@pytest.fixture
def chromium() -> str:
    return chromium_path()


def browsers() -> list[int]:
    """Those that this process has started, by its driver."""
    parents = {
        int(each.name): parent(each)
        for each in Path("/proc").iterdir()
        if each.name.isdecimal()
    }
    known = {os.getpid()}
    while more := {pid for pid, by in parents.items() if by in known} - known:
        known |= more
    words = {pid: said(Path("/proc") / str(pid) / "cmdline") for pid in known}
    return [pid for pid, text in words.items() if PIPE in text and OTHER not in text]


def parent(process: Path) -> int:
    return int((said(process / "stat").rpartition(b") ")[2].split() or [b"", b"0"])[1])


def said(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""  # it has just ended


async def test_a_picture_runs_no_script_and_fetches_nothing_and_a_browser_that_ends_is_replaced(
    chromium,
):
    asked: list[str] = []

    async def anything(request: Any) -> PlainTextResponse:
        asked.append(request.url.path)
        return PlainTextResponse("body { background: red }")

    painter = Painter(chromium, longest=600)
    async with serving(Starlette(routes=[Route("/{rest:path}", anything)])) as port:
        there = f"http://127.0.0.1:{port}"
        plain = "<p style='color: black'>R$ 1.234,56</p>"
        hostile = (
            f"<link rel=stylesheet href={there}/a.css><link rel=preconnect href={there}>"
            f"<script>document.body.style.background = 'red'</script><script src={there}/b.js></script>"
            f"<style>@import '{there}/c.css'; p {{ background: url({there}/d.png) }}</style>"
            f"<meta http-equiv=refresh content='0;url={there}/e'>"  # nor does it lead away
        )
        frames = f"<iframe src={there}/f></iframe><iframe src=file:///etc/passwd></iframe>"
        try:
            pictures = [await painter.draw(html) for html in (plain, hostile + plain, frames)]
            [first] = browsers()  # one for all of them

            os.kill(first, signal.SIGKILL)
            again = [await painter.draw(plain) for _ in range(2)]
            [second] = browsers()

            painter.longest = 0.0
            late = await painter.draw(plain)
            left = browsers()  # nobody knows what it was at
        finally:
            await painter.close()

    assert isinstance(pictures[0], bytes)
    assert pictures[0].startswith(PNG)
    assert pictures[0] == pictures[1] == again[1]
    assert isinstance(pictures[2], bytes)
    assert [] == asked
    assert first != second
    assert ("no screenshot within 0 s", []) == (late, left)
    assert "the page is too large for a screenshot" == await painter.draw("x" * (MOST_HTML + 1))
    assert [] == browsers()


async def done(there: World) -> dict[str, Any]:
    quote = await there.quote(number(there, vehicle=False))
    await there.drained()
    seen = await there.seen(quote)
    assert "DONE" == seen["status"]
    return seen


async def shown(there: World, job: int) -> dict[str, str]:
    return {each.name: each.media for each in await there.app.evidence.list(job)}


async def test_every_accepted_price_has_its_page_and_its_picture(
    database_url, tmp_path, chromium
):
    told = {"screenshots": "auto", "chromium": chromium}
    async with world(database_url, tmp_path, told=told) as there:
        await there.app.knobs.set("quotes.max_products", 3)
        (await there.app.tools["quotes"].painter()).longest = 600.0  # of a machine that is busy
        seen = await done(there)
        accepted = [
            each for each in seen["resume_data"]["tested_products"] if each["price"] is not None
        ]
        kept = await shown(there, seen["job"])
        [one] = [
            each
            for each in await there.app.evidence.list(seen["job"])
            if each.name == f"{accepted[0]['evidence']}.png"
        ]

        names = {each["evidence"] for each in accepted}
        assert len(names) == len(accepted)
        assert {f"{name}.html": "text/html" for name in names} | {
            f"{name}.png": "image/png" for name in names
        } == kept
        assert (await there.app.evidence.read(one.sha256)).startswith(PNG)
        assert 1 == len(browsers())
    assert [] == browsers()


async def test_a_picture_that_fails_is_told_and_the_page_is_kept(database_url, tmp_path):
    told = {"screenshots": "auto", "chromium": str(tmp_path / "nothing")}
    async with world(database_url, tmp_path, told=told) as there:
        seen = await done(there)
        kept = await shown(there, seen["job"])

        assert {"text/html"} == {*kept.values()}
        assert all(each["no_picture"] for each in seen["result"]["sources"])


async def test_a_picture_that_hangs_delays_no_page_and_after_a_crash_nothing_is_fetched_again(
    database_url, tmp_path
):
    """When the browser starts, all pages and the price are saved already; the next runner reads them back."""
    begun, hanging = tmp_path / "begun", tmp_path / "hanging"
    hanging.write_text(f"#!/bin/sh\n: > {begun}\nexec sleep 600\n")
    hanging.chmod(0o755)
    told = {"screenshots": "auto", "chromium": str(hanging)}
    async with world(database_url, tmp_path, told=told) as there:
        quote = await there.quote(number(there, vehicle=False))
        running = asyncio.create_task(there.app.run(until_idle=True))
        async with asyncio.timeout(60):
            while not begun.exists():  # noqa: ASYNC110 — another process makes it
                await asyncio.sleep(0.05)
        seen = await there.seen(quote)
        saved = {each.name for each in await there.app.steps(seen["job"]) if each.saved_at}
        pages = len(there.services.log("shops"))
        running.cancel()
        await asyncio.wait({running})

        assert "PROCESSING" == seen["status"]
        assert At.PRICE_EXTRACTION_DONE in saved
        assert pages == len(seen["resume_data"]["tested_products"])
        assert (1, 1) == (there.calls("anthropic"), there.calls("serpapi"))
    told = {"screenshots": "auto", "chromium": str(tmp_path / "nothing")}
    async with world(database_url, tmp_path, told=told) as there:
        await there.drained()
        seen = await there.seen(quote)

        assert "DONE" == seen["status"]
        assert all(each["no_picture"] for each in seen["result"]["sources"])
        for service in ("anthropic", "serpapi", "shops"):
            assert 0 == there.calls(service)


@pytest.mark.parametrize("point", ["step.before_function", "step.after_function"])
async def test_a_crash_around_a_picture_costs_neither_the_page_nor_a_second_drawing(
    database_url, tmp_path, chromium, point
):
    """Five steps, three pages and the price come before the tenth step, a picture."""
    told = {"screenshots": "auto", "chromium": chromium}
    async with world(database_url, tmp_path, told=told) as there:
        await there.app.knobs.set("quotes.max_products", 3)
        (await there.app.tools["quotes"].painter()).longest = 600.0  # of a machine that is busy
        with crash_at(point, "exception", 10):
            seen = await done(there)
        attached = [
            each.details["name"]
            for each in await there.app.events(seen["job"])
            if each.type == "evidence"
        ]

        assert 2 == seen["attempt_number"]
        names = {each["evidence"] for each in seen["resume_data"]["tested_products"]} - {None}
        assert sorted(f"{name}.{kind}" for name in names for kind in ("html", "png")) == sorted(
            attached
        )
        assert (1, 1, 3) == tuple(map(there.calls, ("anthropic", "serpapi", "shops")))


async def test_without_a_chromium_a_picture_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    painter = Painter()
    try:
        assert "apt-get install chromium" in str(await painter.draw("<p>page</p>"))
    finally:
        await painter.close()


async def test_without_the_extra_the_page_alone_is_kept(database_url, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "retoma.chromium", raising=False)
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    async with world(database_url, tmp_path, told={"screenshots": "auto"}) as there:
        seen = await done(there)

        assert {"text/html"} == {*(await shown(there, seen["job"])).values()}
        assert not any("no_picture" in each for each in seen["result"]["sources"])
