"""The ads library of the sandbox: the same for the same seed, on both layouts, and ill on demand."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import httpx2
import pytest

from retoma.apps.ads.sandbox import Ad, Library, Wanted, build_pages
from retoma.engine.rules.errors import BadInput, Transient
from retoma.programs.worker import ADAPTERS
from retoma.programs.worker.model import Filters
from retoma.sandbox.box import Box
from retoma.sandbox.faults import Fault, Faults

WEEK = Filters(start="2025-03-01", end="2025-03-07")
RED = {"Forwarded": "by=_red"}


@asynccontextmanager
async def asked(box: Box) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=box)
    async with httpx2.AsyncClient(transport=transport, base_url="http://ads.test") as client:
        yield client


def box(tmp_path: Any = None, **faults: Any) -> Box:
    log = None if tmp_path is None else tmp_path / "requests.jsonl"
    return Box(build_pages(Library(7)), Faults(**faults), log_file=log)


async def read_all(client: httpx2.AsyncClient, name: str, filters: Filters) -> list[Any]:
    adapter, found, at = ADAPTERS[name], list[Any](), None
    while True:
        path, params = adapter.query(filters, at)
        page = adapter.read((await client.get(path, params=list(params))).text)
        found += page.ads
        at = page.next
        if at is None:
            return found


def as_row(ad: Ad) -> dict[str, Any]:
    names = ("id", "title", "advertiser", "text", "language", "media_type", "url", "qtd_ads")
    return {**{name: getattr(ad, name) for name in names}, "date": str(ad.date)}


def test_there_are_tens_of_thousands_of_ads_and_a_seed_makes_the_same_again():
    month = Wanted(start=date(2025, 3, 1), end=date(2025, 3, 31))
    ads = Library(7).find(month)

    assert 20_000 < 12 * len(ads)
    assert len(ads) == len({ad.id for ad in ads})
    assert ads == Library(7).find(month)
    assert ads != Library(8).find(month)
    assert {"video", "image"} == {ad.media_type for ad in ads}
    assert {"pt", "en", "es", "fr"} == {ad.language for ad in ads}


@pytest.mark.parametrize("layout", ["gallery", "archive"])
@pytest.mark.parametrize(
    ("media", "languages"), [("all", ()), ("video", ("pt",)), ("image", ("en", "pt"))]
)
async def test_both_layouts_show_the_same_ads_to_who_asks_for_them(layout, media, languages):
    filters = Filters(start=WEEK.start, end=WEEK.end, format=media, languages=languages)
    wanted = Wanted(
        start=date(2025, 3, 1),
        end=date(2025, 3, 7),
        media_type=filters.media_type,
        languages=frozenset(languages),
        by_count=True,
    )

    async with asked(box()) as client:
        found = await read_all(client, layout, filters)

    expected = [as_row(ad) for ad in Library(7).find(wanted)]
    assert len(expected) > 40  # more than one page of either
    assert expected == found


@pytest.mark.parametrize("layout", ["gallery", "archive"])
async def test_a_year_without_ads_is_an_empty_page_and_not_a_broken_one(layout):
    async with asked(box()) as client:
        nothing = Filters(start="2024-01-01", end="2024-01-31")
        assert [] == await read_all(client, layout, nothing)

    with pytest.raises(Transient, match="not a page of ads"):
        ADAPTERS[layout].read("<!doctype html><p>Sign in first")


@pytest.mark.parametrize("layout", ["gallery", "archive"])
async def test_an_ad_that_is_not_as_it_was_is_no_ad_with_holes(layout):
    adapter = ADAPTERS[layout]
    async with asked(box()) as client:
        path, params = adapter.query(WEEK, None)
        text = (await client.get(path, params=list(params))).text

    with pytest.raises(Transient, match="layout of an ad has changed"):
        adapter.read(text.replace('class="title"', "").replace("vídeo", "filme"))


async def test_f14_each_fault_is_met_by_whom_it_is_meant_for_and_no_one_else(tmp_path):
    there = box(tmp_path)
    async with asked(there) as client:
        told = {"trouble": "status", "status": 429, "retry_after": 7, "proxy": "red"}
        assert 204 == (await client.post("/_sandbox/faults", json=told)).status_code
        direct = await client.get("/")
        first = await client.get("/", headers=RED)
        second = await client.get("/", headers=RED)
        seen = (await client.get("/_sandbox/log")).json()

    assert [200, 429, 200] == [direct.status_code, first.status_code, second.status_code]
    assert "7" == first.headers["retry-after"]
    assert [(None, 200), ("red", 429), ("red", 200)] == [
        (line["proxy"], line["status"]) for line in seen
    ]
    kept = (tmp_path / "requests.jsonl").read_text().splitlines()
    assert seen == [json.loads(line) for line in kept]


async def test_a_proxy_is_blocked_after_so_many_requests_and_the_others_are_not():
    async with asked(box(block_after=2)) as client:
        red = [(await client.get("/", headers=RED)).status_code for _ in range(4)]
        blue = await client.get("/", headers={"Forwarded": "by=_blue"})
        await client.delete("/_sandbox/faults")
        again = await client.get("/", headers=RED)

    assert [200, 200, 403, 403] == red
    assert [200, 200] == [blue.status_code, again.status_code]


def test_chance_brings_the_same_faults_for_the_same_seed():
    def fates(seed: int) -> list[str | None]:
        faults = Faults(seed=seed, rate=0.3)
        found = (faults.next(None, "/") for _ in range(200))
        return [None if fault is None else fault.trouble for fault in found]

    assert fates(3) == fates(3)
    assert fates(3) != fates(4)
    assert 30 < sum(fate is not None for fate in fates(3)) < 90


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"trouble": "ghosts"},
        {"trouble": "slow", "seconds": -1},
        {"trouble": "status", "status": 200},
        {"trouble": "cut", "times": 0},
        {"trouble": "hang", "colour": "red"},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(told):
    with pytest.raises(BadInput):
        Fault.of(told)
