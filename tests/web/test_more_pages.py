"""Runners, pools, gates, schedules, the audit log, people: seen by whoever may, changed by whoever may."""

import asyncio
import json
import re
from base64 import b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from html import unescape
from importlib.metadata import version
from typing import Any

import httpx2

from retoma import Retoma, settings
from retoma.access import Role
from retoma.engine.rules.live_settings import Knob, Source
from retoma.services.settings import list_settings
from retoma.settings import Settings
from retoma.web.cursor import Cursor
from retoma.web.pages.audit import audit_screen
from retoma.web.pages.kit import Looker
from retoma.web.pages.runners import RunnersScreen
from retoma.web.pages.view import View
from retoma.words import Language
from tests.engine.aids import change
from tests.web.aids import ROOT_KEY, World, world
from tests.web.test_pages import HOSTILE, HTML
from tests.web.test_sign_in import FORM, signed_in

SENT = {**FORM, **HTML, "HX-Request": "true"}
LONG = "x" * 50 + HOSTILE
PAGES = ("/runners", "/pools", "/gates", "/schedules", "/audit")
CLOSED = ("/people", "/settings")


async def furnished(house: World) -> None:
    """A thing of each sort, with names that are markup."""
    app = house.app
    await app.pools.declare(LONG, {LONG: {"password": "CANARY-thing"}, "b": 2}, off_after=3)
    await app.breakers.declare(LONG, threshold=3)
    await app.rates.set(LONG, 0.25, burst=2)
    await app.limits.set(LONG, 7)
    app.schedule(LONG, "count", cron="0 6 * * *", payload=1)
    await app.schedules.list()


async def ran(house: World) -> None:
    """One runner has come and gone."""
    await house.app.submit("count", 1)
    await house.app.run(until_idle=True, name=LONG)


async def posted(
    browser: httpx2.AsyncClient, path: str, csrf: str, **fields: Any
) -> httpx2.Response:
    return await browser.post(path, data={"csrf": csrf, **fields}, headers=SENT)


def told(answer: httpx2.Response) -> str:
    """The word in the corner, once it was seen to be all that was drawn."""
    assert 200 == answer.status_code, answer.text
    assert 1 == answer.text.count("<hx-partial")
    assert 'hx-target="#notices"' in answer.text
    return unescape(answer.text)


# — what is seen —


async def test_every_page_is_drawn_for_every_role_in_both_languages(database_url):
    """With nothing to show at all, and with names that are markup."""
    async with world(database_url) as house:
        for path in (*PAGES, *CLOSED):
            assert 200 == (await house.admin.get(path, headers=HTML)).status_code, path
        await furnished(house)
        await ran(house)
        looks = (("pt-BR", house.admin), ("en", house.operator), ("en", house.viewer))
        for language, who in looks:
            headers = {**HTML, "Accept-Language": language}
            for path in (*PAGES, *(CLOSED if who is house.admin else ())):
                answer = await who.get(path, headers=headers)
                assert 200 == answer.status_code, (path, answer.text)
                assert f'lang="{language}"' in answer.text
                assert "<script>alert" not in answer.text, path
                assert "<b>{{ 7*7 }}" not in answer.text
                assert "CANARY" not in answer.text
                assert not re.search(r"\sstyle=|\son\w+=", answer.text), path
                assert path in CLOSED or HOSTILE in unescape(answer.text), path


async def test_what_a_page_shows_changes_when_it_is_drawn_again(database_url):
    """One partial draws a row on the first page and in every update."""
    async with world(database_url) as house:
        await ran(house)
        pages = house.site.state.pages
        answer = await house.viewer.get("/runners", headers=HTML)
        screen = RunnersScreen(pages, _looker(pages).view)
        [total, rows] = await screen.draw()

        assert total.html in answer.text
        assert rows.html in answer.text
        assert 1 == len(rows.rows)
        assert {"total", "rows"} == {total.id, rows.id}
        assert screen.key == RunnersScreen(pages, _looker(pages).view).key


def _looker(pages: Any) -> Looker:
    view = View(
        language=Language.EN,
        role=Role.VIEWER,
        timezone=pages.house.retoma.timezone,
        called=pages.called,
    )
    return Looker(
        pages=pages,
        view=view,
        person=None,
        session=None,
        theme="",
        toured=True,
        path="/runners",
        query={},
        htmx=False,
    )


async def test_whoever_may_not_do_it_has_no_button_for_it_and_is_refused(database_url):
    async with world(database_url) as house:
        await furnished(house)
        orders = {
            "/runners/drain": ("admin",),
            "/pools/orders": ("admin",),
            "/gates/limit": ("admin",),
            "/gates/rate": ("admin",),
            "/gates/breaker/open": ("admin", "operator"),
            "/schedules/run": ("admin", "operator"),
            "/people/invite": ("admin",),
            "/people/remove": ("admin",),
            "/keys/create": ("admin",),
            "/keys/revoke": ("admin",),
            "/keys/rotate": ("admin",),
            "/sessions/end": ("admin",),
            "/settings/change": ("admin",),
            "/settings/reset": ("admin",),
        }
        for role in ("viewer", "operator", "admin"):
            browser, csrf = await signed_in(house, role)
            for path, allowed in orders.items():
                status = (await posted(browser, path, csrf)).status_code
                assert (422 if role in allowed else 403) == status, (role, path)
            forged = [await posted(browser, path, "x" * len(csrf)) for path in list(orders)[:2]]
            assert [403, 403] == [each.status_code for each in forged]
            drawn = "".join([(await browser.get(each, headers=HTML)).text for each in PAGES])
            assert (role == "admin") == (
                'action="/pools/orders"' in drawn or "ask-limit" in drawn
            )
            assert (role != "viewer") == ("ask-open" in drawn and "do-run" in drawn)
            assert (role == "admin") == ('href="/people"' in drawn)
            assert (200 if role == "admin" else 403) == (
                await browser.get("/people", headers=HTML)
            ).status_code
            await browser.aclose()


HOSTILE_ADDRESSES = {
    "/pools?pool=nobody": 404,
    "/pools?pool=%00": 422,
    "/pools?pool=" + "x" * 201: 422,
    "/gates?cursor=forged": 422,
    "/audit?since=yesterday": 422,
    "/audit?since=0001-01-01T00:00&until=9999-12-31T23:59": 422,
    "/audit?since=2026-02-01T00:00&until=2026-01-01T00:00": 422,
    "/audit?text=" + "x" * 201: 422,
    "/audit?cursor=WyJ4IiwxXQ": 422,
    "/audit?actor=%00": 422,
}


async def test_a_hostile_address_is_answered_with_a_page_that_says_so(database_url):
    async with world(database_url) as house:
        for path, expected in HOSTILE_ADDRESSES.items():
            answer = await house.admin.get(path, headers=HTML)
            assert expected == answer.status_code, (path, answer.text)
            assert "text/html" in answer.headers["content-type"]
        streams = [f"/live{path}" for path in (*PAGES, *CLOSED)]
        nobody = [(await house.nobody.get(path)).status_code for path in streams]
        viewer = [(await house.viewer.get(f"/live{path}")).status_code for path in CLOSED]

        assert [401] * len(streams) == nobody
        assert [403] * len(CLOSED) == viewer


# — runners —


async def test_a_runner_is_asked_to_leave_and_one_that_is_gone_is_not(database_url):
    async with world(database_url) as house:
        await ran(house)
        [runner] = await house.app.runners.list()
        browser, csrf = await signed_in(house, "admin")

        gone = await posted(browser, "/runners/drain", csrf, boot=runner.boot)
        nobody = await posted(browser, "/runners/drain", csrf, boot="nobody")
        running = asyncio.create_task(house.app.run(name="alive one", slots=3))
        while not (living := [each for each in await house.app.runners.list() if each.living]):
            await house.app.clock.sleep(0.02)
        page = await browser.get("/runners", headers=HTML)
        drained = await posted(browser, "/runners/drain", csrf, boot=living[0].boot)
        await running  # it leaves by itself

        assert [409, 404] == [gone.status_code, nobody.status_code]
        assert 1 == page.text.count('form="do-drain"')
        assert "alive one was asked to leave" in told(drained)
        await browser.aclose()


# — pools —


async def test_things_are_switched_many_at_once_with_a_reason_or_none_of_them(database_url):
    async with world(database_url) as house:
        await furnished(house)
        browser, csrf = await signed_in(house, "admin")
        order = {"pool": LONG, "verb": "off", "thing": [LONG, "b"], "why": "the shop is shut"}

        async def states() -> set[str]:
            return {each.state for each in await house.app.pools.items(LONG)}

        others: list[dict[str, Any]] = [
            {"why": ""},
            {"thing": []},
            {"thing": [LONG, "nobody"]},
            {"thing": ["b"] * 1_001},
            {"verb": "burn"},
            {"pool": ""},
            {"pool": "nobody"},
            {"verb": "free", "thing": ["b"]},
        ]
        refused = [
            (await posted(browser, "/pools/orders", csrf, **{**order, **other})).status_code
            for other in others
        ]
        before = await states()
        off = await posted(browser, "/pools/orders", csrf, **order)
        after = await states()
        page = await browser.get("/pools", params={"pool": LONG}, headers=HTML)
        on = await posted(browser, "/pools/orders", csrf, **{**order, "verb": "on"})
        [line, *_] = (await house.admin.get("/api/events?verb=pool.switched_off")).json()[
            "items"
        ]

        assert [422, 422, 404, 422, 422, 422, 404, 404] == refused
        assert ({"on"}, {"off"}, {"on"}) == (before, after, await states())
        assert "2 of" in told(off)
        assert "switched on" in told(on)
        assert 2 == page.text.count("the shop is shut</span>")
        assert "CANARY" not in page.text
        assert ("Bia", {"reason": "the shop is shut"}) == (line["actor"], line["details"])
        await browser.aclose()


# — gates —


async def test_a_breaker_is_opened_with_a_reason_and_closed(database_url):
    async with world(database_url) as house:
        await furnished(house)
        browser, csrf = await signed_in(house)

        async def state() -> str:
            [breaker] = await house.app.breakers.list()
            return breaker.state

        path = "/gates/breaker"
        without = await posted(browser, f"{path}/open", csrf, name=LONG)
        nobody = await posted(browser, f"{path}/open", csrf, name="nobody", why="x")
        other = await posted(browser, f"{path}/burn", csrf, name=LONG)
        before = await state()
        opened = await posted(browser, f"{path}/open", csrf, name=LONG, why="it is down")
        after = await state()
        page = await browser.get("/gates", headers=HTML)
        closed = await posted(browser, f"{path}/close", csrf, name=LONG)

        assert [422, 404, 404] == [each.status_code for each in (without, nobody, other)]
        assert ("closed", "open", "closed") == (before, after, await state())
        assert "it is down" in page.text
        assert f"{LONG} is open" in told(opened)
        assert f"{LONG} is closed" in told(closed)
        await browser.aclose()


async def test_a_cap_and_a_rate_are_changed_and_nonsense_changes_nothing(database_url):
    async with world(database_url) as house:
        await furnished(house)
        browser, csrf = await signed_in(house, "admin")
        bad = [
            *[
                ("/gates/limit", {"key": LONG, "cap": cap})
                for cap in ("0", "-1", "x", "9" * 30)
            ],
            ("/gates/limit", {"key": "y" * 201, "cap": "1"}),
            *[
                ("/gates/rate", {"key": LONG, "per_second": rate})
                for rate in ("", "0", "-1", "nan", "inf", "x")
            ],
            ("/gates/rate", {"key": LONG, "per_second": "1", "burst": "0.5"}),
        ]
        refused = [
            (await posted(browser, path, csrf, **fields)).status_code for path, fields in bad
        ]
        [limit] = await house.app.limits.list()
        [rate] = await house.app.rates.list()
        await posted(browser, "/gates/limit", csrf, key=LONG, cap="3")
        await posted(browser, "/gates/rate", csrf, key=LONG, per_second="2,5", burst="")
        [lower] = await house.app.limits.list()
        [quicker] = await house.app.rates.list()
        back = await posted(browser, "/gates/limit", csrf, key=LONG, cap="")

        assert [422] * len(bad) == refused
        assert (7, 0.25) == (limit.cap, rate.per_second)
        assert (3, True) == (lower.cap, lower.by_hand)
        assert 2.5 == quicker.per_second
        assert "what the code says holds" in told(back)
        await browser.aclose()


# — schedules —


async def test_a_schedule_is_run_paused_and_goes_on(database_url):
    async with world(database_url) as house:
        await furnished(house)
        browser, csrf = await signed_in(house)
        before = await house.app.insights.counts()

        run = await posted(browser, "/schedules/run", csrf, name=LONG)
        paused = await posted(browser, "/schedules/pause", csrf, name=LONG)
        [still] = await house.app.schedules.list()
        page = await browser.get("/schedules", headers=HTML)
        await posted(browser, "/schedules/unpause", csrf, name=LONG)
        [again] = await house.app.schedules.list()
        bad = [
            await posted(browser, "/schedules/run", csrf, name="nobody"),
            await posted(browser, "/schedules/burn", csrf, name=LONG),
        ]
        after = await house.app.insights.counts()

        assert "was submitted" in told(run)
        assert "is paused" in told(paused)
        assert still.paused_at is not None
        assert again.paused_at is None
        assert 'class="state paused"' in page.text
        assert 'form="do-unpause"' in page.text
        assert [404, 404] == [each.status_code for each in bad]
        assert sum(before.values()) + 1 == sum(after.values())
        await browser.aclose()


# — the audit log —


async def test_the_audit_log_is_searched_page_by_page_and_saved_as_it_was_searched(
    database_url,
):
    async with world(database_url) as house:
        for n in range(60):
            await house.app.limits.set(f"key {n}", 1 + n, actor="Ana")
        first = await house.viewer.get("/audit?actor=Ana", headers=HTML)
        [older] = re.findall(r'href="(/audit\?[^"]*cursor=[^"]+)" rel="next"', first.text)
        second = await house.viewer.get(unescape(older), headers=HTML)
        one = await house.viewer.get("/audit?text=KEY+17&actor=Ana", headers=HTML)
        none = await house.viewer.get("/audit?actor=Nobody", headers=HTML)
        past = await house.viewer.get("/audit?until=2001-01-01T00:00", headers=HTML)
        typed = await house.viewer.get("/audit?since=2026-01-31T12:00", headers=HTML)
        looker = _looker(house.site.state.pages)
        screen = audit_screen(looker, since="2026-01-31T12:00", until="2026-02-01T00:00Z")
        [table] = re.findall(r'href="(/api/events\.csv[^"]*)"', one.text)
        saved = await house.viewer.get(unescape(table))

        assert (50, 10) == tuple(page.text.count('<tr id="line-') for page in (first, second))
        assert 1 == one.text.count('<tr id="line-')
        assert "Nobody did such a thing. Clear" in none.text
        assert "Nobody did such a thing. Clear" in past.text
        assert 200 == saved.status_code
        assert 2 == len(saved.text.strip().splitlines())
        assert "key 17" in saved.text
        # What a form says is the house's time, and comes back as it was typed.
        assert datetime(2026, 1, 31, 15, tzinfo=UTC) == screen.search.since
        assert datetime(2026, 2, 1, tzinfo=UTC) == screen.search.until
        assert 'name="since" value="2026-01-31T12:00"' in typed.text


# — people and keys —


async def test_a_key_is_shown_once_works_is_rotated_and_revoked(database_url):
    async with world(database_url) as house:
        browser, csrf = await signed_in(house, "admin")
        wanted = {"person": HOSTILE[:60], "role": "viewer", "label": "robot", "expires": "90d"}

        made = told(await posted(browser, "/keys/create", csrf, **wanted))
        [token] = re.findall(r"retoma_[0-9a-f]{16}_\w+", made)
        page = (await browser.get("/people", headers=HTML)).text
        works = await house.nobody.get("/api/me", headers={"x-api-key": token})
        [key] = [each["id"] for each in await _keys(house) if each["label"] == "robot"]
        rotated = told(await posted(browser, "/keys/rotate", csrf, id=key))
        [other] = re.findall(r"retoma_[0-9a-f]{16}_\w+", rotated)
        revoked = await posted(browser, "/keys/revoke", csrf, id=key)
        over = await house.nobody.get("/api/me", headers={"x-api-key": token})
        new = await house.nobody.get("/api/me", headers={"x-api-key": other})
        plain = await browser.post(
            "/keys/create", data={"csrf": csrf, **wanted}, headers={**FORM, **HTML}
        )
        bad = [
            await posted(browser, "/keys/create", csrf, **{**wanted, **other_})
            for other_ in ({"person": ""}, {"role": "god"}, {"expires": "soon"})
        ]

        assert token not in page
        assert "robot" in page
        assert [200, 401, 200] == [each.status_code for each in (works, over, new)]
        assert "opens nothing any more" in told(revoked)
        assert re.search("retoma_[0-9a-f]{16}_", plain.text)
        assert "no-store" == plain.headers["cache-control"]
        assert [422] * 3 == [each.status_code for each in bad]
        await browser.aclose()


async def _keys(house: World) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = (await house.admin.get("/api/keys")).json()["items"]
    return keys


async def test_somebody_is_invited_signed_out_and_removed(database_url):
    async with world(database_url) as house:
        browser, csrf = await signed_in(house, "admin")
        invited = told(
            await posted(browser, "/people/invite", csrf, person="Caio", role="viewer")
        )
        [link] = re.findall(r"/enter/\w+", invited)
        theirs = await house.nobody.post(link, headers=FORM)
        sessions = (await house.admin.get("/api/sessions")).json()["items"]
        [session] = [each["id"] for each in sessions if each["person"] == "Caio"]

        ended = await posted(browser, "/sessions/end", csrf, id=session)
        left = (await house.admin.get("/api/sessions")).json()["items"]
        oneself = await posted(browser, "/people/remove", csrf, person="Bia")
        removed = await posted(browser, "/people/remove", csrf, person="Caio")
        people = (await house.admin.get("/api/people")).json()["items"]

        assert 303 == theirs.status_code
        assert "signed out" in told(ended)
        assert [] == [each for each in left if each["person"] == "Caio"]
        assert 422 == oneself.status_code
        assert "may not come in" in told(removed)
        assert "Caio" not in [each["name"] for each in people]
        assert "Bia" in [each["name"] for each in people]
        assert ROOT_KEY not in (await browser.get("/people", headers=HTML)).text
        await browser.aclose()


MANY = 230
NUMBERS = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})"  # noqa: S608
CROWD = (
    f"{NUMBERS} INSERT INTO people (name, role, created_at)"  # noqa: S608 — ours
    " SELECT 'p' || (1000 + i), 'viewer', (SELECT clock()) FROM n",
    f"{NUMBERS} INSERT INTO api_keys (id, person, role, label, hash, created_at, created_by)"  # noqa: S608
    " SELECT 'k' || (1000 + i), (SELECT min(id) FROM people), 'viewer', '', 'x',"
    " (SELECT clock()), 'ana' FROM n",
    f"{NUMBERS} INSERT INTO sign_in_sessions"  # noqa: S608
    " (id, person, role, hash, agent, created_at, seen_at, expires_at)"
    " SELECT 's' || (1000 + i), (SELECT min(id) FROM people), 'viewer', 'x', 'a' || (1000 + i),"
    " (SELECT clock()), (SELECT clock()), (SELECT clock_in(9999)) FROM n",
)


async def test_many_people_keys_and_sessions_are_turned_over_page_by_page(database_url):
    """Also where all of them were made at one instant; each once, and the other tables stay."""
    async with world(database_url) as house:
        browser, _ = await signed_in(house, "admin")
        database = await house.app.database()
        for each in CROWD:
            await change(database, each)
        for table, named in (
            ("people", r'title="(p1\d{3})"'),
            ("keys", r"<code>(k1\d{3})</code>"),
            ("sessions", r'title="(a1\d{3})"'),
        ):
            address, seen = "/people", list[str]()
            while address:
                page = (await browser.get(address, headers=HTML)).text
                seen += re.findall(named, page)
                following = [
                    unescape(each)
                    for each in re.findall(r'href="(/people\?[^"]*)" rel="next"', page)
                    if each.endswith(f"#people-{table}")
                ]
                address = following[0] if following else ""
            assert MANY == len(seen) == len(set(seen)), table
            assert f'href="/people#people-{table}">First' in page
        for cursor in ("x", "WzEsMl0"):
            for table in ("people", "keys", "sessions"):
                bad = await browser.get("/people", params={table: cursor}, headers=HTML)
                assert 422 == bad.status_code
        await browser.aclose()


async def test_the_api_turns_people_keys_and_sessions_over_too(database_url):
    """By any size of page, each once; a name as long as a name may be is found again."""
    async with world(database_url) as house:
        await signed_in(house, "admin")
        longest = "\N{ROCKET}" * 200
        await house.admin.post("/api/people", json={"person": longest, "role": "viewer"})
        assert longest in [each["name"] for each in await _all_of(house, "/api/people", 1)]
        database = await house.app.database()
        for each in CROWD:
            await change(database, each)
        for path in ("/api/people", "/api/keys", "/api/sessions"):
            whole = await _all_of(house, path, 200)
            assert MANY < len(whole) == len({each["id"] for each in whole}), path
            for limit in (100, len(whole) % 200):
                assert whole == await _all_of(house, path, limit), (path, limit)
            first = (await house.admin.get(path)).json()
            assert (50, str) == (len(first["items"]), type(first["next"]))


async def _all_of(house: World, path: str, limit: int) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        asked: dict[str, int | str] = {"limit": limit}
        if cursor:
            asked["cursor"] = cursor
        answer = (await house.admin.get(path, params=asked)).raise_for_status().json()
        seen += answer["items"]
        cursor = answer["next"]
    return seen


async def test_a_cursor_of_another_list_or_a_forged_one_is_refused(database_url):
    async with world(database_url) as house:
        forged = {
            "/api/people": [Cursor("people", None).write("a\0b"), "x"],
            "/api/sessions": [
                Cursor("sessions", None).write("yesterday", "s1"),
                Cursor("sessions", None).write("2026-01-01T00:00:00", "s1"),
                half_a_character(Cursor("sessions", None)),
            ],
            "/api/keys": [
                Cursor("sessions", None).write("2026-01-01T00:00:00+00:00", "s1"),
                Cursor("keys", True).write("2026-01-01T00:00:00+00:00", "k1"),
            ],
        }
        for path, cursors in forged.items():
            for cursor in cursors:
                answer = await house.admin.get(path, params={"cursor": cursor})
                assert (422, "bad_cursor") == (answer.status_code, answer.json()["code"])


def half_a_character(stamp: Cursor) -> str:
    """What JSON can say and no database can hold."""
    [mark] = json.loads(b64decode(f"{stamp.write()}=="))
    text = json.dumps([mark, "2026-01-01T00:00:00+00:00", "\ud800"])
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def test_a_key_is_revoked_however_many_came_after_it(database_url):
    async with world(database_url) as house:
        wanted = {"person": "Rui", "role": "viewer"}
        made = (await house.admin.post("/api/keys", json=wanted)).json()
        for each in CROWD:
            await change(await house.app.database(), each)

        [revoked] = (await house.admin.post(f"/api/keys/{made['id']}/revoke")).json()
        missing = await house.admin.post("/api/keys/none/revoke")

        assert (made["id"], False) == (revoked["id"], revoked["good"])
        assert 404 == missing.status_code


# — settings —


async def test_every_knob_is_shown_with_its_source_and_no_secret_is(database_url, monkeypatch):
    monkeypatch.setenv("RETOMA_LEASE", "45")
    monkeypatch.setenv("RETOMA_SECRET_KEY", "CANARY-" + "s" * 40)
    async with world(database_url) as house:
        page = await house.admin.get("/settings", headers={**HTML, "Accept-Language": "pt-BR"})
        refused = await house.operator.get("/settings", headers=HTML)
        seen = await list_settings(house.app, house.site.state.pages.settings, every=True)
        knobs = {each.variable: each for each in seen}

    assert 403 == refused.status_code
    assert {"RETOMA_LEASE", "RETOMA_SLOTS", "RETOMA_API_KEY"} <= knobs.keys()
    assert len(Settings.model_fields) == len(knobs) == page.text.count('<td class="knob">')
    assert (45, Source.ENVIRONMENT) == (
        knobs["RETOMA_LEASE"].value,
        knobs["RETOMA_LEASE"].source,
    )
    assert Source.DEFAULT is knobs["RETOMA_SLOTS"].source
    assert ("***", Source.GIVEN) == (
        knobs["RETOMA_API_KEY"].value,
        knobs["RETOMA_API_KEY"].source,
    )
    assert "***" == knobs["RETOMA_SECRET_KEY"].value
    assert "CANARY" not in page.text
    assert "Por quanto tempo um executor em silêncio" in page.text


async def test_the_password_of_an_address_is_stars_and_an_older_name_is_the_environment(
    database_url, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ana:CANARY@db.example.org/work")
    monkeypatch.setenv("JOB_LOCK_TTL_MS", "90000")
    async with Retoma(database_url) as app:
        await app.upgrade()
        seen = await list_settings(app, settings.read(), every=True)
    knobs = {each.variable: each for each in seen}

    address, lease = knobs["RETOMA_DATABASE_URL"], knobs["RETOMA_LEASE"]
    assert ("postgresql://***@db.example.org/work", Source.ENVIRONMENT) == (
        address.value,
        address.source,
    )
    assert (("DATABASE_URL",), 90, Source.ENVIRONMENT) == (
        address.others,
        lease.value,
        lease.source,
    )


LIMIT = Knob("session_limit", 5, "int", least=1, most=100, why=LONG)


async def test_an_admin_changes_a_knob_and_the_page_shows_it_by_its_event(database_url):
    async with world(database_url) as house:
        house.app.knobs.declare("ads", [LIMIT])
        browser, csrf = await signed_in(house, "admin")
        first = await browser.get("/settings", headers=HTML)
        changed = await posted(
            browser, "/settings/change", csrf, name="ads.session_limit", value="8"
        )
        kept = await posted(browser, "/settings/change", csrf, name="keep_done", value="30d")
        page = unescape((await browser.get("/settings", headers=HTML)).text)
        lines = (await house.viewer.get("/api/events")).json()["items"]
        back = await posted(browser, "/settings/reset", csrf, name="ads.session_limit")
        nothing = await posted(browser, "/settings/change", csrf, name="keep_done", value="")
        seen = {each.name: each for each in await house.app.knobs.all()}

        assert "ads.session_limit" in first.text
        assert HOSTILE not in first.text, "a reason is text"
        assert "ads.session_limit is 8 from now on" in told(changed)
        assert "keep_done is 2592000 from now on" in told(kept)
        assert "keep_done is nothing from now on" in told(nothing)
        assert "its default holds again" in told(back)
        assert 'value="ads.session_limit" aria-label="Reset ads.session_limit"' in page
        assert '<span class="sub">30 d</span>' in page
        assert {"knob.set"} == {each["verb"] for each in lines[:2]}
        assert (5, None, Source.DEFAULT) == (
            seen["ads.session_limit"].value,
            seen["keep_done"].value,
            seen["ads.session_limit"].source,
        )
        await browser.aclose()


async def test_row_35_what_a_knob_cannot_be_is_refused_with_the_rule(database_url, monkeypatch):
    monkeypatch.setenv("RETOMA_ALERT_STUCK", "3")
    async with world(database_url) as house:
        house.app.knobs.declare("ads", [LIMIT])
        browser, csrf = await signed_in(house, "admin")
        bad = {
            ("ads.session_limit", "0"): 422,
            ("ads.session_limit", "1000000"): 422,
            ("ads.session_limit", ""): 422,
            ("keep_done", "1s"): 422,
            ("nobody", "1"): 404,
            ("slots", "7"): 409,
            ("alert_stuck", "7"): 409,
        }
        for (name, value), status in bad.items():
            page = await posted(browser, "/settings/change", csrf, name=name, value=value)
            wire = await house.admin.put(f"/api/settings/{name}", json={"value": value})
            assert (status, status) == (page.status_code, wire.status_code), (name, page.text)
        rule = (
            await house.admin.put("/api/settings/ads.session_limit", json={"value": 0})
        ).json()
        drawn = unescape((await browser.get("/settings", headers=HTML)).text)

        assert "ads.session_limit is a whole number from 1 to 100, not 0" in rule["detail"]
        assert Source.DATABASE not in {each.source for each in await house.app.knobs.all()}
        assert "the environment holds" in drawn
        await browser.aclose()


async def test_knobs_over_the_api_are_an_admins(database_url):
    async with world(database_url) as house:
        refused = [
            await house.operator.get("/api/settings"),
            await house.operator.put("/api/settings/alert_stuck", json={"value": 5}),
            await house.operator.delete("/api/settings/alert_stuck"),
        ]
        before = {
            each["name"]: each for each in (await house.admin.get("/api/settings")).json()
        }
        changed = (
            await house.admin.put("/api/settings/RETOMA_ALERT_SLOW", json={"value": "3m"})
        ).json()
        reset = (await house.admin.delete("/api/settings/alert_slow")).json()
        again = await house.admin.delete("/api/settings/alert_slow")

    assert [403] * 3 == [each.status_code for each in refused]
    assert (120, "default", True, True) == tuple(
        before["alert_slow"][name] for name in ("value", "source", "live", "changes")
    )
    assert (False, False, "***") == tuple(
        before["api_key"][name] for name in ("live", "changes", "value")
    )
    assert (180, "database", "RETOMA_ALERT_SLOW") == (
        changed["value"],
        changed["source"],
        changed["variable"],
    )
    assert changed["changed_by"]
    assert (120, "default") == (reset["value"], reset["source"])
    assert 200 == again.status_code


async def test_a_runners_row_has_its_version(database_url):
    async with world(database_url) as house:
        house.app.version = "7"
        await ran(house)
        page = (await house.viewer.get("/runners", headers=HTML)).text
        [wire] = (await house.viewer.get("/api/runners", params={"every": "true"})).json()

    assert f"{version('retoma')}, app 7" == wire["version"]
    assert wire["version"] in page
