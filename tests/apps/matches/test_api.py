"""Matches over the API: started, looked at, repaired, taken away; what is refused changes nothing."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2

from retoma.apps.matches import APP
from retoma.apps.matches.sandbox import Layout, Odd
from tests.apps.matches.aids import LEAGUE, House, house
from tests.apps.people import people

ROUND: dict[str, Any] = {"league": LEAGUE, "season": 2026, "round": 1}


def asked(there: House, url: str) -> AbstractAsyncContextManager[dict[str, httpx2.AsyncClient]]:
    return people(there.app, APP, url)


async def test_a_round_from_its_start_to_its_table(database_url):
    """R3 R5 R6: the same start answers the same; the gate, tasks, matches, a table without formulas."""
    async with house(database_url) as there, asked(there, database_url) as by:
        olga, vera = by["operator"], by["viewer"]
        first = await olga.post("/api/scrape", json=ROUND)
        again = await olga.post("/api/scrape", json=ROUND)
        assert (201, 200) == (first.status_code, again.status_code), first.text
        [begun] = first.json()["scrapes"]
        assert (True, "PENDING", None) == (
            begun["new"],
            begun["scrape"]["status"],
            begun["scrape"]["expected"],
        )
        assert begun["scrape"]["id"] == again.json()["scrapes"][0]["scrape"]["id"]
        gate = f"/api/rounds/{LEAGUE}/2026/1"
        assert not (await vera.get(gate)).json()["complete"]
        await there.drained()

        told = (await vera.get(gate)).json()
        assert (True, 10, 10, []) == tuple(
            told[name] for name in ("complete", "expected", "stored", "missing")
        )
        scrape = f"/api/scrape/jobs/{begun['scrape']['id']}"
        assert "DONE" == (await vera.get(scrape)).json()["status"]
        page = (await vera.get(f"{scrape}/tasks", params={"limit": 6})).json()
        rest = (
            await vera.get(f"{scrape}/tasks", params={"limit": 6, "cursor": page["next"]})
        ).json()
        assert [6, 4] == [len(each["items"]) for each in (page, rest)]
        assert {"DONE"} == {each["status"] for each in page["items"] + rest["items"]}
        assert [] == (await vera.get(f"{scrape}/tasks?status=FAILED")).json()["items"]
        one = page["items"][0]
        assert one == (await vera.get(f"/api/scrape/tasks/{one['id']}")).json()
        match = (await vera.get(f"/api/matches/{one['partida_id']}")).json()
        truth = {each.key: each.plain() for each in there.truth()}[one["match_key"]]
        assert truth["events"] == match["events"]
        listed = (await vera.get("/api/matches", params={"team": one["home"]})).json()["items"]
        assert [one["partida_id"]] == [each["id"] for each in listed]
        table = await vera.get("/api/matches/export", params={"league": LEAGUE})
        assert ("text/csv; charset=utf-8", 11) == (
            table.headers["content-type"],
            len(table.text.splitlines()),
        )
        sheet = (await vera.get("/api/matches/export?format=excel")).content.decode("utf-8-sig")
        assert (11, True) == (len(sheet.splitlines()), sheet.startswith("id;league;season;"))
        assert 10 == len((await vera.get("/api/matches/export?format=json")).json())
        assert 1 == len((await vera.get("/api/scrape/jobs", params=ROUND)).json()["items"])


async def test_a_range_is_begun_as_a_whole_and_once_by_its_key(database_url):
    async with house(database_url) as there, asked(there, database_url) as by:
        olga = by["operator"]
        body = ROUND | {"to_round": 3}
        made = [
            await olga.post("/api/scrape", json=body, headers={"Idempotency-Key": "k"})
            for _ in range(2)
        ]
        assert [201, 200] == [each.status_code for each in made]
        assert [1, 2, 3] == [each["scrape"]["round"] for each in made[1].json()["scrapes"]]
        assert 3 == len((await olga.get("/api/scrape/jobs")).json()["items"])


NO_ROUNDS = (
    (ROUND | {"round": 0}, 422),
    (ROUND | {"round": 39}, 422),
    (ROUND | {"round": "1"}, 422),
    (ROUND | {"to_round": 39}, 422),
    (ROUND | {"round": 5, "to_round": 4}, 422),
    (ROUND | {"season": 12}, 422),
    (ROUND | {"league": "várzea"}, 404),
    (ROUND | {"url": "http://169.254.169.254/"}, 422),
)


async def test_what_is_no_round_is_refused(database_url):
    async with house(database_url) as there, asked(there, database_url) as by:
        for body, status in NO_ROUNDS:
            answer = await by["operator"].post("/api/scrape", json=body)
            assert status == answer.status_code, answer.text

        assert [] == (await by["viewer"].get("/api/scrape/jobs")).json()["items"]
        assert [] == await there.rows("SELECT 1 FROM jobs")


# What a page may be, and what its task comes to; None: it is stored.
BAD_PAGES = {
    Odd.SCORE_100: "SCHEMA_INVALID",
    Odd.HUGE: "too_large",
    Odd.DEEP: "SCHEMA_INVALID",
    Odd.UNORDERED: None,
    Odd.HOSTILE: None,
}
NO_QUESTIONS = (
    ("retry-failed", {"job_id": 0}),
    ("retry-failed", {"round": 0}),
    ("retry-failed", {"league": "x" * 1_000}),
    ("retry-failed", {"url": "http://127.0.0.1/"}),
    ("retry-missing", ROUND | {"round": 0}),
    ("retry-missing", ROUND | {"round": 39}),
    ("retry-missing", {"league": LEAGUE}),
    ("replay", {"task_id": -1}),
)


async def test_bad_pages_are_refused_with_evidence_and_bad_questions_change_nothing(
    database_url,
):
    """Show 5, R4 H-44 H-47: 50 MB, 100 to 0, markup in names, events in any order, links off the site."""
    async with house(database_url) as there, asked(there, database_url) as by:
        olga, vera = by["operator"], by["viewer"]
        odd = list(zip(there.truth(), BAD_PAGES, strict=False))
        for match, how in odd:
            there.site.world.make_odd(LEAGUE, match.key, how)
        there.site.world.make_odd(LEAGUE, there.truth(2)[0].key, Odd.OFF_SITE)
        begun = await olga.post("/api/scrape", json=ROUND | {"to_round": 2})
        one, two = [each["scrape"]["id"] for each in begun.json()["scrapes"]]
        await there.drained()

        stored = await there.matches()
        tasks = (await vera.get(f"/api/scrape/jobs/{one}/tasks")).json()["items"]
        by_key = {each["match_key"]: each for each in tasks}
        for match, how in odd:
            task, code = by_key[match.key], BAD_PAGES[how]
            assert code == task["error_code"], how
            assert (code is None) == (match.key in stored)
            if code is not None:
                assert ("FAILED", code) == (task["status"], task["error"]["code"])
            else:
                assert match.plain()["events"] == stored[match.key]["events"]
        told = (await vera.get(f"/api/scrape/jobs/{two}")).json()
        assert ("FAILED", "SCHEMA_INVALID", "matches[0].url") == (
            told["status"],
            told["error_code"],
            told["error"]["path"],
        )
        assert (
            12 == there.asked().total()
        )  # two rounds and ten matches, and nothing of elsewhere

        before = await there.rows("SELECT id, state, generation FROM jobs ORDER BY id")
        for what, body in NO_QUESTIONS:
            answer = await olga.post(f"/api/scrape/{what}", json=body)
            assert 422 == answer.status_code, (what, body, answer.text)
        unknown = await olga.post(
            "/api/scrape/retry-missing", json=ROUND | {"league": "várzea"}
        )
        assert 404 == unknown.status_code
        assert before == await there.rows("SELECT id, state, generation FROM jobs ORDER BY id")


async def test_repairs(database_url):
    """R4 H-44 H-46: the snapshot as plain text, a replay that is shown first, a match put right by hand."""
    async with house(database_url) as there, asked(there, database_url) as by:
        olga, vera = by["operator"], by["viewer"]
        wrong, drawn, *_ = there.truth()
        there.site.world.make_odd(LEAGUE, wrong.key, Odd.SCORE_100)
        await olga.post("/api/scrape", json=ROUND)
        await there.drained()
        tasks = await failed(vera)
        [task] = tasks
        assert ("FAILED", "SCHEMA_INVALID", wrong.key) == tuple(
            task[name] for name in ("status", "error_code", "match_key")
        )
        page = await olga.get(f"/api/scrape/tasks/{task['id']}/snapshot")
        assert "attachment" in page.headers["content-disposition"]
        assert ("text/plain; charset=utf-8", "sandbox; default-src 'none'") == (
            page.headers["content-type"],
            page.headers["content-security-policy"],
        )
        assert 403 == (await vera.get(f"/api/scrape/tasks/{task['id']}/snapshot")).status_code
        replayed = (await olga.post("/api/scrape/replay", json={"apply": True})).json()
        assert (0, 0, None) == tuple(
            replayed[name] for name in ("readable", "promoted", "next")
        )
        foreign = await olga.post("/api/scrape/replay", json={"cursor": "AAAA"})
        assert 422 == foreign.status_code
        nonsense = await olga.post("/api/scrape/replay", json={"layouts": "cubist"})
        assert 422 == nonsense.status_code

        accept = f"/api/scrape/tasks/{task['id']}/accept"
        for bad in (
            {"match": wrong.plain() | {"score": {"home": 100, "away": 0}}, "why": "x"},
            {"match": {}, "why": "x"},
            {"match": wrong.plain(), "why": ""},
        ):
            assert 422 == (await olga.post(accept, json=bad)).status_code
        other = {"match": drawn.plain(), "why": "x"}
        assert 409 == (await olga.post(accept, json=other)).status_code
        assert 9 == len(await there.matches())
        right = {"match": wrong.plain(), "why": "confirmed by the league"}
        assert 403 == (await vera.post(accept, json=right)).status_code
        done = await olga.post(accept, json=right)
        assert (200, "DONE") == (done.status_code, done.json()["status"]), done.text
        assert (await vera.get(f"/api/rounds/{LEAGUE}/2026/1")).json()["complete"]
        audit = await there.rows(
            "SELECT actor, details ->> 'why' FROM audit WHERE verb = 'matches.promoted'"
        )
        assert [("Olga", "confirmed by the league")] == audit
        assert {"jobs": []} == (await olga.post("/api/scrape/retry-failed", json={})).json()


async def test_what_failed_or_is_missing_is_tried_again(database_url):
    async with house(database_url) as there, asked(there, database_url) as by:
        olga, vera = by["operator"], by["viewer"]
        there.site.world.draw(Layout.MODERN)
        await olga.post("/api/scrape", json=ROUND)
        await there.drained()
        there.site.world.draw(Layout.CLASSIC)
        assert 403 == (await vera.post("/api/scrape/retry-failed", json={})).status_code
        tried = (await olga.post("/api/scrape/retry-failed", json=ROUND)).json()
        assert 1 == len(tried["jobs"])
        await there.drained()
        missing = (await olga.post("/api/scrape/retry-missing", json=ROUND)).json()
        assert ([], [], True) == tuple(
            missing[name] for name in ("missing", "jobs", "looked_again")
        )
        await there.drained()
        assert (await vera.get(f"/api/rounds/{LEAGUE}/2026/1")).json()["complete"]
        other = (await olga.post("/api/scrape/retry-missing", json=ROUND | {"round": 2})).json()
        assert "PENDING" == other["scrape"]["status"]


async def failed(vera: httpx2.AsyncClient) -> list[Any]:
    [scrape] = (await vera.get("/api/scrape/jobs")).json()["items"]
    told = await vera.get(f"/api/scrape/jobs/{scrape['id']}/tasks?status=FAILED")
    return list(told.json()["items"])
