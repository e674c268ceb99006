"""A match put right by a person: by the same rules as a page, whole, with who and why; or nothing at all."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from retoma.apps.matches import APP, store
from retoma.apps.matches.clients.parsers import draft_match, layouts, parse_match
from retoma.apps.matches.model import PageRefused, Wanted
from retoma.apps.matches.sandbox import Layout, Match, Odd, Season
from retoma.apps.matches.sandbox.layouts import DRAWN
from retoma.apps.matches.sandbox.odd import oddly
from retoma.apps.matches.schemas import MatchPage, from_json
from retoma.apps.matches.sites import sites
from retoma.apps.matches.words import in_words
from retoma.codec import encode
from retoma.engine.rules.errors import IllegalMove
from retoma.words import Language, tell
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, House, house, stored_as
from tests.apps.people import people

HOSTILE = "<script>alert('gol')</script>"
FORMULA = "=HYPERLINK(1)"
WHY = "conferido na súmula"
CLASSIC = sites()[LEAGUE].at("https://jogos.example")


def asked(there: House, url: str) -> AbstractAsyncContextManager[dict[str, httpx2.AsyncClient]]:
    return people(there.app, APP, url)


async def failed(there: House) -> tuple[Match, int]:
    """A round of which one match says a hundred to nothing, and its task."""
    wrong, *_ = there.truth()
    there.site.world.make_odd(LEAGUE, wrong.key, Odd.SCORE_100)
    run = await there.scraped()
    return wrong, (await there.tasks(run))[wrong.key]["id"]


def but(match: Match, **other: Any) -> dict[str, Any]:
    return {**match.plain(), **other}


def flawed(match: Match) -> dict[str, dict[str, Any]]:
    """By where the flaw is, a match that is not to be stored."""
    plain = match.plain()
    events = plain["events"]
    player = plain["lineups"]["home"]["starters"][0]["name"]
    goal = {"minute": 90, "added": 9, "side": "home", "kind": "goal", "player": player}
    card = {"minute": 12, "side": "home", "kind": "yellow", "player": "Ninguém"}
    none: dict[str, Any] = {"added": None, "other": None}
    hundred = {"home": 50, "away": 50}
    return {
        "score.home": but(match, score={"home": 100, "away": 0}),
        "score": but(match, events=[*events, {**goal, **none}]),
        ".player": but(match, events=[{**card, **none}, *events]),
        "events[0].minute": but(match, events=[{**card, **none, "minute": 135}]),
        "lineups.home.staff[0]": but(
            match,
            lineups={**plain["lineups"], "home": {**plain["lineups"]["home"], "staff": [""]}},
        ),
        "stadium": but(match, stadium="\u202e \u202c"),
        "kickoff": but(match, kickoff=None),
        "lineups": but(match, lineups=None),
        "statistics.possession": but(
            match, statistics={**plain["statistics"], "possession": {"home": 60, "away": 60}}
        ),
        "statistics.shots_on_target.home": but(
            match,
            statistics={**plain["statistics"], "shots": {"home": 0, "away": 50}}
            | {"shots_on_target": hundred},
        ),
        "key": but(match, home="flamengo", away="flamengo"),
        "league": but(match, league=HOSTILE),
        "page": but(match, **{"<img src=x onerror=alert(1)>": 1}),
    }


async def test_what_does_not_add_up_is_refused_by_its_path_and_changes_nothing(database_url):
    """Show 5, R4: 100-0, goals that do not add up, an unknown player; told in the reader's language."""
    async with house(database_url) as there, asked(there, database_url) as by:
        wrong, task = await failed(there)
        accept = f"/api/scrape/tasks/{task}/accept"
        for path, match in flawed(wrong).items():
            answer = await by["operator"].post(accept, json={"match": match, "why": WHY})
            assert 422 == answer.status_code, path
            told = [each["path"] for each in answer.json()["errors"]]
            assert any(path in each or each.startswith("<img") for each in told), (path, told)
        for body, status in (
            ({"match": wrong.plain(), "why": "  "}, 422),
            ({"match": wrong.plain()}, 422),
            ({"match": "<b>", "why": WHY}, 422),
            ({"match": but(wrong, status="live"), "why": WHY}, 422),
            ({"match": but(wrong, round=2), "why": WHY}, 409),
        ):
            answer = await by["operator"].post(accept, json=body)
            assert status == answer.status_code, (body["match"], answer.text)
        in_pt = await by["operator"].post(
            accept,
            json={"match": but(wrong, score={"home": 9, "away": 9}), "why": WHY},
            headers={"Accept-Language": "pt-BR"},
        )
        assert "e os gols somam" in in_pt.json()["errors"][0]["message"]
        right = {"match": wrong.plain(), "why": WHY}
        assert 403 == (await by["viewer"].post(accept, json=right)).status_code
        lost = await by["operator"].post("/api/scrape/tasks/999/accept", json=right)
        assert 404 == lost.status_code

        assert 9 == len(await there.matches())
        assert "FAILED" == (await there.tasks(1))[wrong.key]["status"]
        assert [] == await there.rows("SELECT 1 FROM audit WHERE verb = 'matches.promoted'")


async def test_it_is_stored_whole_once_with_who_and_why(database_url):
    """R1 R2 R6: events in any order; hostile names are text; of two at the same moment one is stored."""
    async with house(database_url) as there, asked(there, database_url) as by:
        wrong, task = await failed(there)
        plain = wrong.plain()
        told = but(wrong, events=plain["events"][::-1], stadium=f"{FORMULA} {HOSTILE}")
        accept = f"/api/scrape/tasks/{task}/accept"
        body = {"match": told, "why": WHY}
        answers = await asyncio.gather(
            *(by["operator"].post(accept, json=body) for _ in range(3))
        )
        assert [200, 409, 409] == sorted(each.status_code for each in answers)
        again = await by["operator"].post(accept, json=body)
        assert 409 == again.status_code
        assert "already" in again.json()["detail"]

        stored = (await there.matches())[wrong.key]
        assert ("Olga", told["stadium"]) == (stored["stored_by"], stored["stadium"])
        stored_as(wrong, {**stored, "stadium": plain["stadium"]})
        assert [] == await there.rows(PARTIAL)
        assert (await there.seen(1))["complete"]
        audit = await there.rows(
            "SELECT actor, details ->> 'why' FROM audit WHERE verb = 'matches.promoted'"
        )
        assert [("Olga", WHY)] == audit
        history = await there.app.see((await there.tasks(1))[wrong.key]["job"])
        assert ("skipped", "Olga", WHY) == next(
            (each.type, each.actor, each.details["why"])
            for each in history.events
            if each.type == "skipped"
        )
        table = await by["viewer"].get("/api/matches/export", params={"team": wrong.home.key})
        [_, row] = table.text.splitlines()
        assert f"'{FORMULA} {HOSTILE}" in row


async def test_what_another_has_stored_or_begun_anew_is_left_as_it_is(database_url):
    """R6: the whole of it is undone, the dead letter too."""
    async with house(database_url) as there:
        wrong, task = await failed(there)
        page = from_json(MatchPage, encode(wrong.plain() | {"stadium": "Outro"}))
        assert 2 == await there.scraped()  # nothing of the first was open, so this is the next
        assert "a later one has taken its place" in await refused(there, task, page)
        assert 9 == len(await there.matches())

        task = (await there.tasks(2))[wrong.key]["id"]
        told = from_json(MatchPage, encode(wrong.plain()))
        over = [store.games.Over(told, wrong.path, "other")]
        await there.app.write(lambda tx: store.games.add(tx, over))
        assert "is stored already" in await refused(there, task, page)
        assert "FAILED" == (await there.tasks(2))[wrong.key]["status"]
        assert "other" == (await there.matches())[wrong.key]["stored_by"]
        assert [] == await there.rows("SELECT 1 FROM audit WHERE verb = 'matches.promoted'")


async def refused(there: House, task: int, page: MatchPage) -> str:
    with pytest.raises(IllegalMove) as told:
        await there.app.write(lambda tx: store.repairs.accept(tx, task, page, WHY, actor=WHO))
    return str(told.value)


# — what the form begins with, and how flaws are told —


def drawn(odd: Odd | None, layout: Layout) -> tuple[Match, str]:
    match = next(each for each in Season(7).every(LEAGUE) if each.score and sum(each.score) > 2)
    return match, DRAWN[layout].match(oddly(match, odd), odd)


def test_a_draft_is_what_the_page_seems_to_say():
    for layout in Layout:
        match, page = drawn(Odd.STRANGER, layout)
        draft = draft_match(CLASSIC, page)
        plain = match.plain()
        assert len(plain["events"]) + 1 == len(draft["events"])
        assert plain["stadium"] == draft["stadium"]

        _, page = drawn(Odd.NO_SCORE, layout)
        draft = draft_match(CLASSIC, page)
        assert len(plain["events"]) == len(draft["events"])
        assert {"home", "away"} == set(draft["lineups"])
    for nothing in ("<p>enigma</p>", b"\xff\xfe", "<div>" * 5_000, ""):
        assert {} == draft_match(CLASSIC, nothing)


def test_every_flaw_of_a_page_is_told_in_portuguese():
    """It is kept in English; whoever reads it need not know that."""
    told: dict[str, str] = {}
    for odd in Odd:
        for layout in Layout:
            _, page = drawn(odd, layout)
            try:
                parse_match(
                    CLASSIC.read_by(*layouts()),
                    page,
                    wanted=Wanted(season=2026, round=1, key="a-x-b"),
                )
            except PageRefused as refused:
                problems = refused.evidence().get("problems", [])
                told |= {
                    each["why"]: tell(in_words(each["why"]), Language.PT_BR)
                    for each in problems
                }
    for match in flawed(drawn(None, Layout.CLASSIC)[0]).values():
        try:
            from_json(MatchPage, encode(match))
        except PageRefused as refused:
            told |= {
                each["why"]: tell(in_words(each["why"]), Language.PT_BR)
                for each in refused.evidence()["problems"]
            }
    assert len(told) > 10
    assert [] == [why for why, said in told.items() if said == why]
    for why, said in {
        "a match that is finished needs one": "uma partida encerrada precisa dele",
        "Input should be 'home' or 'away'": "deve ser 'home', 'away'",
        "Input should be a valid datetime, invalid character in year": (
            "deve ser uma data com hora, como 2026-04-04T16:00:00-03:00"
        ),
    }.items():
        assert said == tell(in_words(why), Language.PT_BR)
    odd_one = "nobody has ever said so: {x} <b>"
    assert odd_one == tell(in_words(odd_one), Language.PT_BR)
