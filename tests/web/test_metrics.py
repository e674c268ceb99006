"""`/metrics` is what Prometheus reads: true, well formed, bounded, and no place for secrets."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from retoma import Context, Retoma, Transient
from retoma.engine import store
from retoma.engine.query import Meter, Sum
from retoma.engine.query.meter import LimitNow, Line
from retoma.engine.rules.states import State
from retoma.engine.testing import drain
from retoma.secret import Secret
from retoma.web.metrics import (
    CODES,
    DURATION,
    DURATION_ABOUT,
    DURATION_LABELS,
    INFO,
    INFO_ABOUT,
    INFO_LABELS,
    MEASURES,
    Sort,
    exposition,
)
from tests import scrape
from tests.engine.aids import AT_ONCE
from tests.house.files import ROOT
from tests.house.tables import rows_of
from tests.scrape import value
from tests.web.aids import client, code_of, world

EMPTY = Meter(jobs={}, dead={}, happened={}, lasted={}, did={}, held={}, stuck={})
PAGE = ROOT / "docs" / "reference" / "metrics.md"


async def test_w3_what_is_scraped_is_what_happened(database_url):
    """A world of which every end is known, told the same before and after the fold."""
    async with world(database_url) as house:
        await some_ends(house.app)

        for folded in (False, True):
            if folded:
                database = await house.app.database()
                await database.write(store.fold_tallies, verb="fold")
            answer = await house.viewer.get("/metrics")
            told = scrape.read(answer.text)

            assert "text/plain; version=0.0.4; charset=utf-8" == answer.headers["content-type"]
            assert {"done": 3, "dead": 2, "parked": 1} == {
                state: n
                for state in State
                if (n := value(told, "retoma_jobs", kind="work", state=state))
            }
            assert 6 == value(told, "retoma_jobs_submitted_total", kind="work")
            assert 6 == value(told, "retoma_jobs_claimed_total", kind="work")
            assert 2 == value(told, "retoma_jobs_buried_total", kind="work")
            assert {"SHOP": 1, "exception": 1} == {
                code: value(told, "retoma_dead_letters", code=code)
                for code in ("SHOP", "exception")
            }
            assert 3 == value(told, "retoma_attempts_total", kind="work", end="done")
            assert 2 == value(told, "retoma_attempts_total", kind="work", end="failed")
            assert 3 == value(told, f"{DURATION}_count", kind="work", end="done")
            assert 3 == value(told, f"{DURATION}_bucket", kind="work", end="done", le="+Inf")
            assert 2 == value(told, f"{DURATION}_count", kind="work", end="failed")
            assert (6, 3, 2, 0) == tuple(
                value(told, f"retoma_runner_{what}_total", runner="runner")
                for what in ("claimed", "completed", "failed", "retried")
            )
            assert 1 == value(told, "retoma_runners", state="gone")
            assert 1 == value(
                told, INFO, database=house.app.url.split(":")[0].removesuffix("ql")
            )


async def some_ends(app: Retoma) -> None:
    [work] = [each for each in app.kinds if each.name == "work"]
    ends: list[dict[str, Any]] = [{"gives": 1}] * 3
    ends += [{"dies": "closed"}, {"breaks": "oh"}, {"parks": "config"}]
    for each in ends:
        await app.submit(work, each)
    await drain(app)


async def test_what_failed_and_was_tried_again_is_told_by_kind_and_by_runner(database_url):
    async with Retoma(database_url) as app:

        @app.job(name="work", retry=AT_ONCE)
        async def work(ctx: Context, n: int) -> int:
            if n % 2 and ctx.attempt == 1:
                raise Transient("again")
            return n

        await app.submit_many(work, range(6))
        await drain(app)

        told = await scrape.scraped(app)
        assert (6, 3) == tuple(
            value(told, f"{DURATION}_count", kind="work", end=end) for end in ("done", "failed")
        )
        assert 3 == value(told, "retoma_jobs_retried_total", kind="work")
        assert 0 == value(told, "retoma_jobs_buried_total", kind="work")
        assert 3 == value(told, "retoma_runner_retried_total")


def test_a_histogram_counts_everything_below_each_bound():
    lasted = {("work", "done"): {3: Sum(2, 20.0), 16: Sum(1, 90_000.0), 30: Sum(1, 2e9)}}
    meter = replace(EMPTY, happened={("work", "done"): 4}, lasted=lasted)

    told = scrape.read(exposition(meter, "sqlite").decode())

    below = {
        bound: value(told, f"{DURATION}_bucket", le=bound)
        for bound in ("0.016", "65.536", "131.072", "4194.304", "+Inf")
    }
    assert {"0.016": 2, "65.536": 2, "131.072": 3, "4194.304": 3, "+Inf": 4} == below
    assert 2_000_090.02 == pytest.approx(value(told, f"{DURATION}_sum"))


def test_labels_are_escaped_and_bounded_in_length_and_number():
    codes = {f"CODE{n}": n for n in range(1, 200)}
    awkward = 'a"b\\c\nd{}é' + "x" * 500
    meter = replace(
        EMPTY,
        dead={**codes, "": 1_000},
        limits=[LimitNow(awkward, 3, 2)],
        lines=[Line("work", 5.0, float("inf"))],
    )

    text = exposition(meter, "sqlite").decode()
    told = scrape.read(text)

    [[shown, used]] = [(dict(its), n) for its, n in told["retoma_limit_used"].items()]
    assert (awkward[:200], 2) == (shown["limit"], used)
    assert CODES + 1 == len(told["retoma_dead_letters"])
    assert 1_000 == value(told, "retoma_dead_letters", code="none")
    assert sum(range(1, 151)) == value(told, "retoma_dead_letters", code="other")
    assert sum(codes.values()) + 1_000 == sum(told["retoma_dead_letters"].values())
    assert float("inf") == value(told, "retoma_queue_beat_age_seconds")


def test_e27_a_secret_in_a_name_is_not_told():
    secret = Secret(f"CANARY-{uuid.uuid4()}")
    meter = replace(
        EMPTY,
        dead={f"wrong key {secret.reveal()}": 1, f"bad key {secret.reveal()}": 2},
        limits=[LimitNow(f"key:{secret.reveal()}", 3, 2)],
    )

    text = exposition(meter, "sqlite").decode()

    assert secret.reveal() not in text
    assert 3 == sum(scrape.read(text)["retoma_dead_letters"].values())


# — who may ask —


async def test_from_afar_a_viewers_key_is_wanted(database_url):
    async with world(database_url, serve_host="0.0.0.0") as afar:  # noqa: S104
        assert (401, "sign_in") == code_of(await afar.nobody.get("/metrics"))
        assert 200 == (await afar.viewer.get("/metrics")).status_code
        assert 200 == (await afar.admin.get("/metrics")).status_code


async def test_behind_a_proxy_nobody_is_near(database_url):
    async with (
        world(database_url, public_url="https://retoma.example.org") as house,
        client(house.site) as asked,
    ):
        asked.headers["host"] = "retoma.example.org"
        assert (401, "sign_in") == code_of(await asked.get("/metrics"))


async def test_on_this_machine_anybody_may_ask_and_nothing_is_read_past(database_url):
    async with world(database_url) as house:
        assert 200 == (await house.nobody.get("/metrics")).status_code
        assert (422, "bad_input") == code_of(await house.nobody.get("/metrics?name[]=x"))


# — the names —


def test_names_follow_the_conventions():
    names = [each.name for each in MEASURES]

    assert len(names) == len(set(names))
    for each in MEASURES:
        assert each.name.startswith("retoma_")
        assert (each.sort is Sort.COUNTER) == each.name.endswith("_total")
        assert each.about[0].isalnum()
        assert each.about.endswith(".")
    told = scrape.names(exposition(EMPTY, "sqlite").decode())
    assert {each.name: str(each.sort) for each in MEASURES}.items() <= told.items()
    assert {INFO, DURATION, "retoma_process_cpu_seconds_total"} <= told.keys()
    assert all(name.startswith("retoma_") for name in told)


def test_every_name_is_on_the_page_as_the_collector_has_it():
    told: list[tuple[str, str, tuple[str, ...], str]] = [
        (INFO, "gauge", INFO_LABELS, INFO_ABOUT)
    ]
    told += [(each.name, each.sort, each.labels, each.about) for each in MEASURES]
    told += [(DURATION, "histogram", DURATION_LABELS, DURATION_ABOUT)]

    assert [
        [f"`{name}`", sort, ", ".join(f"`{label}`" for label in labels), about]
        for name, sort, labels, about in told
    ] == rows_of(PAGE, "metric")
