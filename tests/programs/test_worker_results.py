"""What a scrape brings home: pages at their place, one whole file, or a bucket."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from retoma import Retoma
from retoma.engine.rules.errors import BadInput, Permanent, Transient
from retoma.outbound import Outbound
from retoma.programs.worker import ADAPTERS, Config
from retoma.programs.worker.adapters import Page
from retoma.programs.worker.model import Filters, ScrapeRequest
from retoma.programs.worker.results import (
    Storage,
    append,
    parts_file,
    results_file,
    tidy,
    write_whole,
)
from retoma.programs.worker.scrape import register
from retoma.programs.worker.way import proxy_at
from retoma.programs.worker.worker import Worker
from retoma.testing import FakeClock, drain
from tests import s3

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def ads(*ids: str) -> list[dict[str, Any]]:
    return [{"id": id_, "text": "é"} for id_ in ids]


def ids_in(file: Path) -> list[str]:
    return [ad["id"] for ad in json.loads(file.read_text(encoding="utf-8"))["ads"]]


def test_a_page_that_is_put_down_twice_stands_there_once(tmp_path):
    parts, results = tmp_path / "parts" / "a.jsonl", tmp_path / "results" / "a" / "a.json"
    first = append(parts, 0, ads("1", "2"))
    append(parts, first, ads("3", "4", "5"))  # killed before it was committed
    second = append(parts, first, ads("3"))
    append(parts, second, ads("half"))  # killed again, and never told of

    assert 3 == write_whole(parts, results, second, None)
    assert ["1", "2", "3"] == ids_in(results)


def test_each_id_is_there_once_and_no_more_of_them_than_were_asked_for(tmp_path):
    parts, results = tmp_path / "a.jsonl", tmp_path / "results" / "a.json"
    end = append(parts, 0, ads("1", "2", "1", "3"))

    assert 3 == write_whole(parts, results, end, None)
    assert 2 == write_whole(parts, results, end, 2)
    assert ["1", "2"] == ids_in(results)
    assert [results] == list(results.parent.iterdir())


def test_nothing_found_is_a_whole_file_too(tmp_path):
    results = tmp_path / "results" / "a.json"

    assert 0 == write_whole(tmp_path / "none.jsonl", results, 0, None)
    assert [] == ids_in(results)


async def test_results_go_into_a_bucket_and_failures_have_the_codes_of_the_document(tmp_path):
    """ERROR400 and ERROR401 of §7.1."""
    file = tmp_path / "scrape_1_results.json"
    file.write_text('{"ads": []}')
    with s3.serving() as server:
        async with Outbound(private={"127.0.0.1"}) as out:
            address = f"s3://ads/year?endpoint={server.endpoint}"
            good = Storage(out, address, (s3.ACCESS, s3.SECRET))
            bad = Storage(out, address, (s3.ACCESS, "wrong"))

            url = await good.put(file, "scrape_1", NOON)
            with pytest.raises(Permanent) as locked:
                await bad.put(file, "scrape_1", NOON)
            server.ill = 1
            with pytest.raises(Transient) as ill:
                await good.put(file, "scrape_1", NOON)

    assert f"{server.endpoint}/ads/year/scrape_1/scrape_1_results.json" == url
    assert {"/ads/year/scrape_1/scrape_1_results.json": b'{"ads": []}'} == server.objects
    assert ["ERROR401", "ERROR400"] == [locked.value.code, ill.value.code]


class NoSession(Worker):
    """Finds two ads, and needs no proxy for it."""

    def is_ready(self, request: ScrapeRequest) -> bool:
        return True

    async def page(self, request: ScrapeRequest, at: str | None) -> Page:
        return Page(ads=ads("1", "2"), next=None, total=2)


@pytest.mark.parametrize(
    ("secret", "ill", "end"),
    [
        (s3.SECRET, 1, ("completed", None)),
        (s3.SECRET, 99, ("failed", "ERROR400")),
        ("wrong", 0, ("failed", "ERROR401")),
    ],
)
async def test_a_scrape_ends_as_its_storage_does(tmp_path, secret, ill, end):
    with s3.serving() as server:
        server.ill = ill
        config = Config(
            site="https://ads.example.org",
            adapter=ADAPTERS["gallery"],
            folder=tmp_path,
            storage=f"s3://ads?endpoint={server.endpoint}",
            storage_keys=(s3.ACCESS, secret),
        )
        url = f"sqlite:///{tmp_path / 'worker.db'}"
        async with Retoma(url, clock=FakeClock()) as retoma, Outbound() as out:
            worker = NoSession(config, retoma, out)
            register(worker)
            filters = Filters(start="2025-01-01", end="2025-01-01")
            await worker.scrapes.begin(
                ScrapeRequest(id="scrape_1", session="s", proxy="p", filters=filters)
            )
            await drain(retoma)
            seen = await worker.scrape("scrape_1")

    assert end == (seen.status, seen.error_code)
    assert (seen.url is not None) == (end[0] == "completed")
    assert not list((tmp_path / "parts").iterdir())
    ended = list(worker.log.read())[-1]
    assert ("scrape.ended", end[0]) == (ended["event"], ended["status"])


def test_pages_that_are_gone_are_not_left_out_in_silence(tmp_path):
    parts, results = tmp_path / "a.jsonl", tmp_path / "results" / "a.json"
    end = append(parts, 0, ads("1", "2"))
    append(parts, 0, ads("1"))

    with pytest.raises(Permanent, match="stored pages are gone"):
        write_whole(parts, results, end, None)
    assert not results.exists()


def test_what_nobody_has_touched_for_long_is_removed_and_nothing_else(tmp_path):
    files = [parts_file(tmp_path, "old"), results_file(tmp_path, "old")]
    files += [parts_file(tmp_path, "new"), results_file(tmp_path, "new")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    for file in files[:2]:
        os.utime(file, (1_000.0, 1_000.0))

    assert 2 == tidy(tmp_path, before=2_000.0)
    assert [False, False, True, True] == [file.exists() for file in files]
    assert not results_file(tmp_path, "old").parent.exists()


@pytest.mark.parametrize(
    "address", ["s3://", "https://ads", "s3://me@ads", "s3://ads?colour=red"]
)
def test_a_bucket_that_makes_no_sense_is_refused(address):
    with pytest.raises(BadInput):
        Storage(Outbound(), address, ("a", "b"))


def test_a_bucket_needs_keys():
    with pytest.raises(BadInput, match="AWS_ACCESS_KEY_ID"):
        Storage(Outbound(), "s3://ads", None)


@pytest.mark.parametrize(
    ("server", "host", "port"),
    [
        ("proxy.example.com:8080", "proxy.example.com", 8080),
        ("proxy.example.com", "proxy.example.com", 80),  # without a port: the host alone
        ("http://10.0.0.1:3128", "10.0.0.1", 3128),
        ("[::1]:3128", "::1", 3128),
    ],
)
def test_a_proxy_is_told_as_host_and_port(server, host, port):
    proxy = proxy_at(server, "ana", "secret", plain=True)

    assert (host, port) == (proxy.host, proxy.port)
    assert "secret" not in repr(proxy)


@pytest.mark.parametrize(
    "server", ["", "a:b@c:1", "ftp://x", "x:99999", "x/../y", "x?y", "x y"]
)
def test_what_is_no_proxy_is_refused_without_being_repeated(server):
    with pytest.raises(BadInput) as refused:
        proxy_at(server, "ana", "secret", plain=True)

    assert not server or server not in str(refused.value)
