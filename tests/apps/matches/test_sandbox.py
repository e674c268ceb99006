"""A match site in a box: whole seasons by seed, two layouts, a log as witness, ill on demand."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from selectolax.lexbor import LexborHTMLParser

from retoma.apps.matches.sandbox import (
    BRIEF,
    CHANCES,
    HOSTILE,
    LAST_STEP,
    Course,
    Layout,
    Matches,
    Odd,
    Season,
    Status,
    build_site,
)
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput

TRUTH = Season(7)
BRASILEIRAO = "brasileirao"
ROUND = "/brasileirao/2026/rodada/1"


@asynccontextmanager
async def asked(site: Matches) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=site)
    async with httpx2.AsyncClient(transport=transport, base_url="http://box.test") as client:
        yield client


class Hasty(Clock):
    """For whom waiting takes no time."""

    async def sleep(self, seconds: float) -> None:
        await self.give_way()


def of_course(course: Course) -> Any:
    return next(each for each in TRUTH.every(BRASILEIRAO) if each.course is course)


# — the truth —


@pytest.mark.parametrize(
    ("league", "teams", "rounds"), [("brasileirao", 20, 38), ("liga-portugal", 18, 34)]
)
def test_everybody_plays_everybody_twice_once_at_home(league, teams, rounds):
    matches = list(TRUTH.every(league))
    pairs = Counter((each.home.key, each.away.key) for each in matches)

    assert rounds * teams // 2 == len(matches) == len(pairs) == len({m.id for m in matches})
    assert {1} == set(pairs.values())
    assert teams * (teams - 1) == len(pairs)
    for number in range(1, rounds + 1):
        playing = [
            team for each in TRUTH.round(league, number) for team in (each.home, each.away)
        ]
        assert teams == len(set(playing)) == len(playing)


def test_a_season_is_made_of_its_seed_and_of_nothing_else():
    def told(season: Season) -> list[dict[str, Any]]:
        return [each.plain() for each in season.round("liga-portugal", 34)]

    assert told(TRUTH) == told(Season(7))
    assert told(TRUTH) != told(Season(8))


def test_goals_make_the_score_and_whoever_does_something_plays():
    seen: Counter[str] = Counter()
    for match in TRUTH.every(BRASILEIRAO, LAST_STEP):
        names = {side: {p.name for p in (*a, *b)} for side, (a, b) in match.lineups.items()}
        scored = Counter(each.counts_for for each in match.events)

        assert (scored["home"], scored["away"]) == match.score
        assert all(each.player in names[each.side] for each in match.events)
        assert Status.FINISHED is match.status
        seen.update(each.kind for each in match.events)
        seen.update(name for name in HOSTILE for side in names.values() if name in side)
    assert {"goal", "own_goal", "penalty", "yellow", "red", "substitution"} <= set(seen)
    assert len(set(HOSTILE) & set(seen)) > 3


def test_what_is_not_over_comes_to_its_end_step_by_step():
    def statuses(course: Course) -> list[str]:
        first = of_course(course)
        return [
            TRUTH.match(BRASILEIRAO, first.round, first.place, step).status for step in range(3)
        ]

    assert ["live", "finished", "finished"] == statuses(Course.LIVE)
    assert ["scheduled", "live", "finished"] == statuses(Course.SCHEDULED)
    assert ["postponed", "postponed", "finished"] == statuses(Course.POSTPONED)
    assert {Course.USUAL} == {
        each.course for each in Season(7, unfinished=0).every(BRASILEIRAO)
    }


def test_what_is_not_there_is_refused():
    with pytest.raises(BadInput, match="rounds 1 to 38"):
        TRUTH.round(BRASILEIRAO, 0)
    with pytest.raises(BadInput, match="brasileirao, liga-portugal"):
        TRUTH.round("premier", 1)


# — the pages —


async def test_a_round_links_to_its_matches_in_both_layouts():
    site = build_site(Season(7, unfinished=0))
    async with asked(site) as client:
        for layout, links in ((Layout.CLASSIC, "tr.jogo a"), (Layout.MODERN, "article a")):
            site.world.draw(layout)
            page = LexborHTMLParser((await client.get(ROUND)).text)
            paths = [node.attributes["href"] for node in page.css(links)]

            assert [each.path for each in TRUTH.round(BRASILEIRAO, 1)] == paths
            assert {200} == {(await client.get(path or "")).status_code for path in paths[:2]}


async def test_a_page_that_is_not_published_yet_is_not_found():
    site, match = build_site(TRUTH), of_course(Course.UNPUBLISHED)
    async with asked(site) as client:
        before = await client.get(match.path)
        site.world.step = 1
        after = await client.get(match.path)

        assert (404, 200) == (before.status_code, after.status_code)
        for path in (
            "/brasileirao/2026/rodada/39",
            "/premier/2026/rodada/1",
            "/brasileirao/2025/jogo/1100",
        ):
            assert 404 == (await client.get(path)).status_code


async def test_hostile_names_are_text_in_the_pages_of_both_layouts():
    site = build_site(Season(7, unfinished=0))
    async with asked(site) as client:
        for layout in Layout:
            site.world.draw(layout)
            for each in TRUTH.round(BRASILEIRAO, 1):
                site.world.make_odd(BRASILEIRAO, each.key, Odd.HOSTILE)
                text = (await client.get(each.path)).text
                page = LexborHTMLParser(text)

                assert [] == page.css("body img, h1 script, li script, span script")
                assert "\u202e" in text


@pytest.mark.parametrize("odd", list(Odd))
async def test_every_odd_one_is_drawn_and_can_be_set_right(odd):
    match = next(each for each in TRUTH.round(BRASILEIRAO, 1) if each.course is Course.USUAL)
    told = {"league": BRASILEIRAO, "match": match.key}
    site = build_site(TRUTH)
    async with asked(site) as client:
        right = [(await client.get(path)).content for path in (ROUND, match.path)]
        await client.post("/_sandbox/world", json={**told, "odd": odd})
        wrong = [(await client.get(path)).content for path in (ROUND, match.path)]
        await client.post("/_sandbox/world", json={**told, "odd": None})
        again = [(await client.get(path)).content for path in (ROUND, match.path)]

        assert right != wrong
        assert right == again
        assert (len(wrong[1]) > 50_000_000) == (odd is Odd.HUGE)


# — the box —


async def test_layout_and_step_change_while_it_runs():
    site = build_site(TRUTH)
    async with asked(site) as client:
        told = {"layout": "modern", "league": BRASILEIRAO}
        state = (await client.post("/_sandbox/world", json=told)).json()
        await client.post("/_sandbox/world", json={"step": 2})

        assert {"brasileirao": "modern", "liga-portugal": "classic"} == state["layouts"]
        assert "data-page" in (await client.get(ROUND)).text
        assert "data-page" not in (await client.get("/liga-portugal/2026/rodada/1")).text
        assert 2 == (await client.get("/_sandbox/world")).json()["step"]


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"[]",
        b'{"step": -1}',
        b'{"step": "1"}',
        b'{"layout": "baroque"}',
        b'{"layout": "modern", "league": "premier"}',
        b'{"league": "brasileirao", "match": "flamengo-x-porto", "odd": "late"}',
        b'{"league": "brasileirao", "match": "flamengo-x-santos", "odd": "x"}',
        b'{"league": "premier", "match": "flamengo-x-santos", "odd": "late"}',
    ],
)
async def test_a_wish_that_makes_no_sense_changes_nothing(told):
    site = build_site(TRUTH)
    before = site.world.state()
    async with asked(site) as client:
        answer = await client.post("/_sandbox/world", content=told)

        assert 422 == answer.status_code
        assert before == site.world.state()


async def test_every_request_is_in_the_log_with_what_became_of_it(tmp_path):
    site = build_site(TRUTH, log=tmp_path / "log.jsonl", pace=1, clock=Hasty())
    async with asked(site) as client:
        fault = {"trouble": "status", "status": 429, "retry_after": 7}
        await client.post("/_sandbox/faults", json=fault)
        refused = await client.get(ROUND)
        await client.get(ROUND)

        assert "7" == refused.headers["retry-after"]
        assert [(ROUND, 429), (ROUND, 200)] == [
            (line["input"], line["status"]) for line in site.log()
        ]
        assert 2 == len((tmp_path / "log.jsonl").read_text().splitlines())
        assert all(0.15 <= line["seconds"] <= 1.5 for line in site.log())


async def test_trouble_comes_by_seed_in_every_way():
    async def seen(seed: int) -> list[str | None]:
        site = build_site(Season(seed), faults=0.5, chances=BRIEF, clock=Hasty())
        for _ in range(60):
            await visit(site)
        return [f"{line['fault']} {line['status']}" for line in site.log()]

    first = await seen(7)

    assert {"slow 200", "cut 200", "status 429", "status 500", "status 503"} <= set(first)
    assert first == await seen(7) != await seen(8)
    assert ("hang", {}) in CHANCES
    assert ("hang", {}) not in BRIEF


async def visit(site: Matches) -> None:
    """Without a client, which would not take half an answer."""
    scope = {"type": "http", "method": "GET", "path": ROUND, "query_string": b"", "headers": []}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Any) -> None:
        await asyncio.sleep(0)

    await site(scope, receive, send)
