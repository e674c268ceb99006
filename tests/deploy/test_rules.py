"""What is shipped for Prometheus and Grafana names only what is exported, and fires when it should."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from retoma import Context, Permanent, Retoma
from retoma.engine import store
from retoma.engine.query import Meter
from retoma.engine.rules import settlement
from retoma.engine.testing import drain
from retoma.web.metrics import exposition
from tests import scrape
from tests.deploy.promql import Scrapes, fires
from tests.engine.aids import boot, change, claim, settle, submit
from tests.house.files import ROOT
from tests.house.tables import rows_of
from tests.scrape import scraped

DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
DASHBOARD = DEPLOY / "grafana" / "retoma.json"
QUARTER = 900.0  # seconds: the window of every rule that has one
OWN = {"up"}  # Prometheus tells this itself
EMPTY = Meter(jobs={}, dead={}, happened={}, lasted={}, did={}, held={}, stuck={})


def rules() -> dict[str, dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return {each["alert"]: each for each in group["rules"]}


def panels() -> Iterator[dict[str, Any]]:
    yield from json.loads(DASHBOARD.read_text())["panels"]


def exported() -> set[str]:
    """Every name a series may have."""
    told = scrape.names(exposition(EMPTY, "sqlite").decode())
    parts = {
        f"{name}_{part}"
        for name, sort in told.items()
        if sort == "histogram"
        for part in ("bucket", "sum", "count")
    }
    return told.keys() | parts | OWN


def named(expression: str) -> set[str]:
    return set(re.findall(r"\bretoma_\w+|\bup\b", expression))


def test_seed_000_has_its_three_alerts_with_their_bounds_and_severities():
    severities = {name: each["labels"]["severity"] for name, each in rules().items()}

    assert {
        "HighStuckQuotes": "warning",
        "SlowProcessing": "warning",
        "WorkerHealthCheck": "critical",
    }.items() <= severities.items()
    assert rules()["HighStuckQuotes"]["expr"].endswith(" > 10")
    assert rules()["SlowProcessing"]["expr"].endswith(" > 120")
    assert rules()["WorkerHealthCheck"]["expr"].endswith(" > 900")


def test_every_rule_says_how_bad_it_is_and_what_to_do():
    commands = (ROOT / "docs" / "reference" / "cli.md").read_text()

    for name, each in rules().items():
        assert {"alert", "expr", "labels", "annotations"} <= each.keys() <= {
            "alert", "expr", "for", "labels", "annotations"
        }, name  # fmt: skip
        assert each["labels"]["severity"] in ("warning", "critical"), name
        assert {"summary", "description"} == each["annotations"].keys(), name
        for command in re.findall(r"`(retoma [a-z ]+)`", str(each["annotations"])):
            assert f"`{command}`" in commands, command


def test_every_name_in_the_rules_is_exported():
    for name, each in rules().items():
        assert named(each["expr"]), name
        assert named(each["expr"]) <= exported(), name


def test_every_name_on_the_dashboard_is_exported():
    told = [target["expr"] for each in panels() for target in each["targets"]]

    assert 20 < len(told)
    for expression in told:
        assert named(expression), expression
        assert named(expression) <= exported(), expression


def test_the_dashboard_shows_most_of_what_there_is_and_nothing_over_another():
    shown = set().union(
        *(named(target["expr"]) for each in panels() for target in each["targets"])
    )
    spots = [
        (x, y)
        for each in panels()
        for x in range(each["gridPos"]["x"], each["gridPos"]["x"] + each["gridPos"]["w"])
        for y in range(each["gridPos"]["y"], each["gridPos"]["y"] + each["gridPos"]["h"])
    ]

    assert len(spots) == len(set(spots))
    assert {x for x, _ in spots} == set(range(24))
    assert len({each["id"] for each in panels()}) == len(list(panels()))
    assert {
        "retoma_jobs",
        "retoma_jobs_stuck",
        "retoma_breaker_state",
        "retoma_cost_spent_total",
    } <= shown


def test_the_example_scrapes_what_serve_listens_on_and_reads_the_rules_beside_it():
    example = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())

    [job] = example["scrape_configs"]
    assert ["127.0.0.1:8321"] == job["static_configs"][0]["targets"]
    assert [RULES.name] == example["rule_files"]
    assert f'job="{job["job_name"]}"' in rules()["ServerAway"]["expr"]


# — when they fire —


async def firing(app: Retoma, before: scrape.Scrape | None = None) -> set[str]:
    now = await scraped(app)
    scrapes = Scrapes(now if before is None else before, now, QUARTER)
    return {name for name, each in rules().items() if fires(each["expr"], scrapes)}


async def test_nothing_fires_where_nothing_is_wrong(database_url):
    async with Retoma(database_url) as app:
        idle = await firing(app)

        @app.job(name="work")
        async def work(ctx: Context, n: int) -> int:
            ctx.cost(provider="acme", usd="0.01")
            return n

        await app.breakers.declare("shop")
        await app.pools.declare("proxies", {"a": 1})
        await app.budgets.set("1 USD", provider="acme", per="day")
        before = await scraped(app)
        await app.submit_many(work, range(3))
        await drain(app)

        assert set() == idle
        assert set() == await firing(app, before)


@pytest.mark.parametrize(
    ("kind", "rule"), [("quotes.quote", "HighStuckQuotes"), ("work", "HighStuckJobs")]
)
async def test_stuck_jobs_fire_above_ten_by_the_name_of_their_kind(
    database_url, test_clock, kind, rule
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "me", lease=1e6, knows=[f"{kind}@1"])
        await submit(database, 11, kind=kind)
        await claim(database, "me", slots=11, queues=[kind], knows=[f"{kind}@1"])
        at_once = await firing(app)
        test_clock.jump(601)
        await change(database, "UPDATE jobs SET progress_at = (SELECT clock()) WHERE id = 11")
        ten = await firing(app)
        test_clock.jump(601)
        eleven = await firing(app)

        assert set() == at_once
        assert set() == ten
        assert {rule} == eleven


@pytest.mark.parametrize(("took", "expected"), [(60, set()), (140, {"SlowProcessing"})])
async def test_slow_processing_fires_above_two_minutes_on_average(
    database_url, test_clock, took, expected
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "me", lease=1e6)
        await submit(database, 2)
        before = None
        for seconds in (5_000, took):  # what is long past says nothing of now
            [held] = [each.held for each in await claim(database, "me")]
            test_clock.jump(seconds)
            await settle(database, "me", held, settlement.done("1"))
            before = before or await scraped(app)

        assert expected == await firing(app, before)


async def test_worker_health_check_fires_when_work_waits_and_nobody_who_knows_it_beats(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "me")
        test_clock.jump(901)
        await boot(database, "server", knows=["retoma.order@1"])
        nothing_waits = await firing(app)
        await submit(database)
        waits = await firing(app)
        await boot(database, "fresh")
        somebody_came = await firing(app)

        assert set() == nothing_waits
        assert {"WorkerHealthCheck"} == waits
        assert set() == somebody_came


async def test_dead_letters_lost_runners_breakers_pools_and_budgets_are_told_of(
    database_url, test_clock
):
    async with Retoma(database_url) as app:

        @app.job(name="work")
        async def work(ctx: Context, n: int) -> None:
            ctx.cost(provider="acme", usd="0.30")
            raise Permanent("no", code="SHOP")

        database = await app.database()
        await app.budgets.set("1 USD", provider="acme", per="day")
        await app.breakers.declare("shop")
        await app.pools.declare("proxies", {"a": 1})
        await app.submit(work, 1)
        quiet = await scraped(app)
        await drain(app)
        dead = await firing(app, quiet)

        before = await scraped(app)
        await app.submit_many(work, range(2))
        await drain(app)
        nearly = await firing(app, before)

        before = await scraped(app)
        await app.breakers.open("shop", "down")
        await app.pools.switch("proxies", ["a"], on=False, reason="old")
        await app.budgets.set("0.5 USD", provider="acme", per="day")
        shut = await firing(app, before)

        before = await scraped(app)
        await app.breakers.close("shop")
        await app.pools.switch("proxies", ["a"], on=True, reason="new")
        await app.budgets.set("100 USD", provider="acme", per="day")
        await boot(database, "gone-by")
        await submit(database, 1)
        await claim(database, "gone-by")
        await change(database, "UPDATE runners SET state = 'lost' WHERE boot = 'gone-by'")
        await boot(database, "me")
        await database.write(lambda tx: store.take_back(tx, "me"), verb="take_back")
        lost = await firing(app, before)
        await change(database, "UPDATE runners SET trouble = 'disk full' WHERE boot = 'me'")
        troubled = await firing(app)
        test_clock.jump(3_601)
        late = await firing(app)

        assert {"DeadLetters"} == dead
        assert {"DeadLetters", "BudgetNearlySpent"} == nearly
        assert {"BreakerOpen", "PoolEmpty", "BudgetNearlySpent", "BudgetSpent"} == shut
        assert {"RunnersLost"} == lost
        assert {"RunnerInTrouble"} == troubled
        assert {"WaitingTooLong", "WorkerHealthCheck"} == late


def test_a_server_that_does_not_answer_is_told_of():
    series = {frozenset({("job", "retoma"), ("instance", "a")}): 0.0}
    other = {frozenset({("job", "retoma"), ("instance", "b")}): 1.0}
    expression = rules()["ServerAway"]["expr"]

    assert fires(expression, Scrapes({}, {"up": series}, QUARTER))
    assert not fires(expression, Scrapes({}, {"up": {**series, **other}}, QUARTER))


def test_the_how_to_tells_of_every_rule():
    told = rows_of(ROOT / "docs" / "howto" / "observe.md", "alert")

    assert [(f"`{name}`", each["labels"]["severity"]) for name, each in rules().items()] == [
        (row[0], row[1]) for row in told
    ]
