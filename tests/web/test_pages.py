"""Pages for people: drawn for whoever looks, in their language; what is posted is asked for, never drawn."""

import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from itertools import product
from typing import Any

import httpx2
import pytest

from retoma.access import Role
from retoma.engine.ports import Clock
from retoma.engine.query import Minute
from retoma.engine.query.tail import Slice, Told
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from retoma.web.broadcast import Hearing, nobody_asks
from retoma.web.pages.assets import FETCHED, read_assets
from retoma.web.pages.board import charted
from retoma.web.pages.live import (
    MOVED,
    Concern,
    Region,
    Screens,
    Stage,
    changes,
    packed,
)
from retoma.web.pages.route import local
from retoma.web.pages.view import View
from retoma.words import Language
from tests.web.aids import ROOT_KEY, World, client, served, world
from tests.web.test_sign_in import FORM, signed_in

HTML = {"Accept": "text/html"}
HOSTILE = "<script>alert(1)</script>\"'><b>{{ 7*7 }}"
FIRST_LOAD = 100_000  # bytes of assets, as they travel


async def furnished(house: World) -> None:
    """A batch in which some died, of two things; one job parked."""
    app = house.app
    payloads: list[dict[str, Any]] = [{"gives": n} for n in range(3)]
    payloads += [
        {"dies": f"shop {n} {HOSTILE}", "code": "SHOP", "evidence": HOSTILE} for n in range(7)
    ]
    payloads += [{"dies": "other", "code": "OTHER"}, {"parks": "ask Ana"}]
    await app.submit_many("work", payloads, name=f"lote {HOSTILE}")
    await app.run(until_idle=True)


PAGES = (
    *(
        "/",
        "/?last=1d",
        "/jobs",
        "/jobs?state=dead&kind=&text=",
        "/jobs?code=NOBODY",
        "/jobs/1",
    ),
    *(
        "/jobs/4",
        "/jobs/12",
        "/batches",
        "/batches/1",
        "/batches/1?state=dead&code=SHOP",
        "/dead",
    ),
    *("/dead?code=SHOP", "/sign-in"),
)


async def test_every_page_is_drawn_for_every_role_in_both_languages(database_url):
    async with world(database_url) as house:
        await furnished(house)
        for language, who in product(("pt-BR", "en"), (house.operator, house.viewer)):
            for path in PAGES:
                headers = {**HTML, "Accept-Language": language}
                answer = await who.get(path, headers=headers)
                assert 200 == answer.status_code, (path, answer.text)
                assert f'lang="{language}"' in answer.text
                assert "no-store" == answer.headers["cache-control"]
                policy = answer.headers["content-security-policy"]
                assert "unsafe" not in policy
                assert "script-src 'self'" in policy
                # Whatever came from outside is text.
                assert "<script>alert" not in answer.text
                assert "<b>{{ 7*7 }}" not in answer.text
                assert not re.search(r"\sstyle=|\son\w+=", answer.text), path

        shown = (await house.viewer.get("/jobs/4", headers=headers)).text
        assert HOSTILE in unescape(shown)
        assert "do-retry" not in shown
        assert "Traceback" not in shown
        assert "do-retry" in (await house.operator.get("/jobs/4", headers=headers)).text


async def test_whoever_is_not_signed_in_is_shown_the_door(database_url):
    async with world(database_url) as house:
        page = await house.nobody.get("/jobs?state=dead", headers=HTML)
        stream = await house.nobody.get("/live/jobs", headers=HTML)
        program = await house.nobody.get("/jobs")

        assert (303, "/sign-in?next=%2Fjobs%3Fstate%3Ddead") == (
            page.status_code,
            page.headers["location"],
        )
        assert (401, 401) == (stream.status_code, program.status_code)


HOSTILE_ADDRESSES = {
    "/jobs?state=nonsense": 422,
    "/jobs?batch=-1": 422,
    "/jobs?batch=99999999999999999999999": 422,
    "/jobs?text=%00": 422,
    "/jobs?text=" + "x" * 201: 422,
    "/jobs?cursor=forged": 422,
    "/jobs?state=dead&cursor=WyJ4IiwxXQ": 422,
    "/dead?fingerprint=../../x": 422,
    "/?last=1y": 422,
    "/jobs/99999": 404,
    "/nowhere": 404,
    "/jobs/0": 422,
    "/jobs/nobody": 422,
    "/batches/99999": 404,
    "/jobs/1?evidence=" + "0" * 64: 404,
}


async def test_a_hostile_address_is_answered_with_a_page_that_says_so(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)
        answers = {
            path: await house.operator.get(path, headers=HTML) for path in HOSTILE_ADDRESSES
        }

        told = {path: answer.status_code for path, answer in answers.items()}
        assert HOSTILE_ADDRESSES == told
        for answer in answers.values():
            assert "text/html" in answer.headers["content-type"]
            assert answer.headers["x-trace-id"] in answer.text


async def test_row_29_a_forged_form_changes_nothing(database_url):
    async with world(database_url) as house:
        job = await house.app.submit("count", 1)
        browser, csrf = await signed_in(house)
        path, fields = f"/jobs/{job.id}/cancel", {"csrf": csrf}

        forged = [
            await browser.post(path, data={}, headers=FORM),
            await browser.post(path, data={"csrf": "x" * len(csrf)}, headers=FORM),
            await browser.post(
                path, data=fields, headers={**FORM, "Origin": "http://evil.example"}
            ),
            await browser.post(
                path, data=fields, headers={**FORM, "Sec-Fetch-Site": "cross-site"}
            ),
        ]
        before = (await house.app.get(job.id)).state
        real = await browser.post(path, data=fields, headers={**FORM, **HTML})

        assert [403] * 4 == [each.status_code for each in forged]
        assert "waiting" == before
        assert (303, f"/jobs/{job.id}") == (real.status_code, real.headers["location"])
        assert "canceled" == (await house.app.get(job.id)).state
        await browser.aclose()


async def test_only_what_is_to_run_later_is_called_scheduled(database_url):
    async with world(database_url) as house:
        later = await house.app.submit("count", 1, delay="1h")
        again = await house.app.submit("count", 2)
        await house.app.cancel(again.id)
        await house.app.retry(again.id)

        shown = [
            (await house.viewer.get(f"/jobs/{job.id}", headers=HTML)).text
            for job in (later, again)
        ]

        mark = '<span class="mark">scheduled</span>'
        assert [True, False] == [mark in each for each in shown]


async def test_what_is_ticked_is_moved_and_the_answer_draws_nothing(database_url):
    async with world(database_url) as house:
        await furnished(house)
        browser, csrf = await signed_in(house)
        order = {"csrf": csrf, "verb": "retry", "job": ["4", "5", "1"]}

        answer = await browser.post(
            "/jobs/orders", data=order, headers={**FORM, **HTML, "HX-Request": "true"}
        )

        elsewhere = {**order, "next": "//evil.example"}
        without_scripts = await browser.post("/jobs/orders", data=elsewhere, headers=FORM)

        assert (303, "/") == (without_scripts.status_code, without_scripts.headers["location"])
        assert 200 == answer.status_code
        assert 1 == answer.text.count("<hx-partial")
        assert 'hx-target="#notices"' in answer.text
        assert "3 moved" in answer.text
        assert {"waiting"} == {(await house.app.get(job)).state for job in (4, 5, 1)}
        [last] = (await house.app.events(4))[-1:]
        assert ("again", "Bia") == (last.type, last.actor)
        await browser.aclose()


NOT_MEANT = (
    {"verb": "retry"},
    {"verb": "retry", "job": [str(n) for n in range(1, 10_001)]},
    {"verb": "retry", "job": ["4", "4; DROP TABLE jobs"]},
    {"verb": "destroy", "job": ["4"]},
    {"verb": "retry", "all": "1", "state": "nonsense"},
    {"verb": "skip", "job": ["4"]},
)


async def test_an_order_that_cannot_be_meant_moves_nothing(database_url):
    async with world(database_url) as house:
        await furnished(house)
        before = await house.app.insights.counts()
        browser, csrf = await signed_in(house)

        answers = [
            await browser.post(
                "/jobs/orders",
                data={"csrf": csrf, **fields},
                headers={**FORM, **HTML, "HX-Request": "true"},
            )
            for fields in NOT_MEANT
        ]

        assert [422] * len(NOT_MEANT) == [each.status_code for each in answers]
        assert all('hx-target="#notices"' in each.text for each in answers)
        assert before == await house.app.insights.counts()
        await browser.aclose()


async def test_how_many_an_order_means_is_said_first_and_moves_nothing(database_url):
    async with world(database_url) as house:
        await furnished(house)
        before = await house.app.insights.counts()
        browser, csrf = await signed_in(house)
        questions = (
            ("/jobs/orders", {"verb": "retry", "all": "1", "code": "SHOP"}),
            ("/jobs/orders", {"verb": "retry", "job": ["1", "4"]}),
            ("/dead/orders", {"verb": "discard", "all": "1"}),
            ("/dead/orders", {"verb": "canary", "all": "1"}),
        )

        answers = [
            await browser.post(
                path, data={"csrf": csrf, **fields}, headers={**FORM, "Retoma-Count": "1"}
            )
            for path, fields in questions
        ]
        await browser.aclose()

        said = ["7 match.", "2 match.", "8 match.", "5 match."]
        assert said == [each.text for each in answers]
        assert before == await house.app.insights.counts()


async def test_a_canary_of_the_dead_goes_first_by_what_they_died_of(database_url):
    async with world(database_url) as house:
        await furnished(house)
        browser, csrf = await signed_in(house)
        page = (await browser.get("/dead", headers=HTML)).text
        [alike] = set(re.findall(r'value="canary ([0-9a-f]{12})"', page))
        sent = {**FORM, **HTML, "HX-Request": "true"}

        first = await browser.post(
            "/dead/orders",
            data={"csrf": csrf, "all": "1", "group": f"canary {alike}"},
            headers=sent,
        )
        after_five = (await house.app.insights.counts())["waiting"]  # type: ignore[index]
        rest = await browser.post(
            "/dead/orders",
            data={"csrf": csrf, "all": "1", "group": f"retry {alike}"},
            headers=sent,
        )
        after_all = (await house.app.insights.counts())["waiting"]  # type: ignore[index]

        assert [200, 200] == [each.status_code for each in (first, rest)]
        assert (5, 7) == (after_five, after_all)
        await browser.aclose()


async def test_row_22_a_hostile_page_is_shown_where_nothing_of_it_can_run(database_url):
    async with world(database_url) as house:
        await furnished(house)
        [piece] = await house.app.evidence.list(4)
        path = f"/jobs/4/evidence/{piece.sha256}"

        frame = await house.operator.get(path)
        page = await house.operator.get(f"/jobs/4?evidence={piece.sha256}", headers=HTML)
        refused = await house.viewer.get(path)

        policy = frame.headers["content-security-policy"]
        assert policy.startswith("sandbox; default-src 'none'")
        assert "allow-" not in policy
        assert "script" not in policy
        assert "nosniff" == frame.headers["x-content-type-options"]
        assert f'sandbox="" title="page.html" src="{path}"' in page.text
        assert "frame-src 'self'" in page.headers["content-security-policy"]
        assert 403 == refused.status_code


async def test_the_language_and_the_theme_are_kept_and_lead_back(database_url):
    async with world(database_url) as house:
        browser = client(house.site)
        chosen = await browser.post(
            "/preferences",
            data={"language": "pt_BR", "next": "/sign-in?next=%2Fjobs"},
            headers=FORM,
        )
        await browser.post("/preferences", data={"theme": "dark"}, headers=FORM)
        page = await browser.get("/sign-in", headers={"Accept-Language": "en"})
        foreign = await browser.post("/preferences", data={"theme": "dark"})

        assert (303, "/sign-in?next=%2Fjobs") == (
            chosen.status_code,
            chosen.headers["location"],
        )
        assert '<html lang="pt-BR" data-theme="dark">' in page.text
        assert 403 == foreign.status_code
        await browser.aclose()


@pytest.mark.parametrize(
    "address", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\nb", None]
)
def test_the_way_back_never_leads_elsewhere(address):
    assert "/" == local(address)


# — assets —


async def test_assets_are_packed_kept_for_ever_and_named_by_what_they_are(database_url):
    async with world(database_url) as house:
        page = (await house.operator.get("/", headers=HTML)).text
        addresses = sorted(set(re.findall(r'(?:src|href)="(/static/[^"#]+)', page)))
        loaded = [await house.nobody.get(address) for address in addresses]
        outside = await house.nobody.get("/static/..%2f..%2fkit.py")

        assert {200} == {each.status_code for each in loaded}
        assert all("immutable" in each.headers["cache-control"] for each in loaded)
        assert all("?v=" in address for address in addresses)
        travelled = sum(int(each.headers["content-length"]) for each in loaded)
        assert travelled < FIRST_LOAD, f"{travelled} bytes"
        assert 404 == outside.status_code


def test_what_run_fetches_is_there():
    """Without it nothing on a page moves by itself, and the page says so."""
    assert [] == read_assets().missing
    assert all(name in read_assets() for name in FETCHED)


# — what changes —


def test_only_what_looks_different_is_sent():
    old = [Region("head", "a"), Region("rows", "r1r2", {"r1": "1", "r2": "2"})]
    same_rows = [Region("head", "a"), Region("rows", "r1R2", {"r1": "1", "r2": "3"})]
    other_rows = [Region("head", "b"), Region("rows", "r2", {"r2": "2"})]

    assert [] == list(changes(old, old))
    assert [Region("r2", "3")] == list(changes(old, same_rows))
    assert ["head", "rows"] == [each.id for each in changes(old, other_rows)]
    assert ["head", "rows"] == [each.id for each in changes([], old)]


def test_a_message_has_each_line_marked_and_no_other():
    chunk = packed([Region("x", "a\r\n\rb data: c\n\nid: 7")]).decode()

    assert chunk.endswith("\n\n")
    assert all(line.startswith("data: ") for line in chunk.rstrip("\n").split("\n"))
    assert b"" == packed([])


@dataclass(frozen=True, slots=True)
class Counted:
    """Something to look at that is different each time it is drawn."""

    drawn: list[int]
    concern: Concern = Concern(job=7)  # noqa: RUF009 — frozen

    @property
    def key(self) -> str:
        return "counted"

    async def draw(self) -> Sequence[Region]:
        self.drawn.append(len(self.drawn))
        return [Region("n", str(len(self.drawn)))]


async def test_an_event_rings_only_the_pages_that_it_concerns():
    stage = Stage(Counted([]), Clock())

    other = stage.messages(Slice([told_of(job=8)], [], None))
    quiet = stage._ring.is_set()
    own = stage.messages(Slice([told_of(job=8), told_of(job=7)], [], None))
    rung = stage._ring.is_set()

    assert ([], False) == (other, quiet)
    assert ([MOVED], True) == (own, rung)
    stage.close()


def told_of(job: int) -> Told:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Told(job, 1, None, EventType.DONE, at, None, None, "work", 1)


async def test_many_who_look_at_the_same_are_drawn_for_once(database_url):
    async with world(database_url) as house:
        screens = Screens(house.site.state.house.broadcaster, house.app.clock)
        shown = Counted([])

        first = [await screens.watch(shown, nobody_asks, "Vera") for _ in range(5)]
        heard = [await anext_with(hearing, b"hx-partial") for hearing in first]
        stages = len(screens._stages)
        for hearing in first:
            hearing.leave()

        assert 1 == stages
        assert all(b'hx-target="#n"' in chunk for chunk in heard)
        assert {} == screens._stages
        await house.site.state.house.broadcaster.close()


async def anext_with(hearing: Hearing, word: bytes) -> bytes:
    async with aclosing(hearing.chunks()) as chunks:
        async for chunk in chunks:
            if word in chunk:
                return chunk
    raise AssertionError("nothing more was told")


def test_what_moves_is_told_as_it_moves(database_url):
    """The stream of a page: all of it first, then the one row that is different."""
    with served(database_url) as house, httpx2.Client(base_url=house.origin, timeout=60) as api:
        api.headers["x-api-key"] = ROOT_KEY
        made = [
            api.post("/api/jobs", json={"kind": "count", "payload": n}).json() for n in (1, 2)
        ]
        with api.stream("GET", "/live/jobs?kind=count") as stream:
            lines = stream.iter_lines()
            first = until(lines, "hx-partial")
            assert all(f'id="job-{job["id"]}"' in first for job in made)
            api.post(f"/api/jobs/{made[0]['id']}/cancel")
            told = until(lines, "#job-")

        assert f'hx-target="#job-{made[0]["id"]}"' in told
        assert f'hx-target="#job-{made[1]["id"]}"' not in told
        assert 'hx-target="#rows"' not in told


def until(lines: Iterator[str], word: str) -> str:
    """The next message with this in it, whole."""
    message = ""
    for line in lines:
        message += line + "\n"
        if not line:
            if word in message:
                return message
            message = ""
    raise AssertionError(f"the stream ended before {word}")


# — how things are told —


@pytest.mark.parametrize(
    ("language", "n", "shown"),
    [
        (Language.EN, 1_234_567, "1,234,567"),
        (Language.PT_BR, 1_234_567, "1.234.567"),
        (Language.PT_BR, 0, "0"),
        (Language.PT_BR, 12.5, "12,5"),
        (Language.PT_BR, 0.0, "0"),
        (Language.EN, 1_000.0, "1,000"),
    ],
)
def test_numbers_are_told_as_people_write_them(language, n, shown):
    view = View(language=language, role=Role.VIEWER, timezone="UTC")

    assert shown == view.number(n)


def test_a_sentence_has_its_times_on_the_clock_of_the_house():
    view = View(language=Language.PT_BR, role=Role.VIEWER, timezone="America/Sao_Paulo")
    said = (
        "since 2026-11-15 01:02:03 UTC, not 2026-02-31 10:00:00 UTC nor 0001-01-01 00:00:00 UTC"
    )

    assert view.timed(said) == (
        "since 14/11 22:02:03, not 2026-02-31 10:00:00 UTC nor 0001-01-01 00:00:00 UTC"
    )


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (1e-7, "0.1 %"), (0.57, "57 %"), (0.999999, "99 %"), (1, "100 %")],
)
def test_a_share_is_never_told_as_all_or_nothing_too_early(share, shown):
    assert shown == View(language=Language.EN, role=Role.VIEWER, timezone="UTC").percent(share)


def test_a_chart_has_every_point_also_where_nothing_happened():
    now = datetime(2026, 1, 1, 12, 30, 20, tzinfo=UTC)
    moved = [
        Minute(now.replace(minute=minute, second=0), "k", State.DONE, n)
        for minute, n in ((29, 6), (30, 5))
    ]

    chart = charted(moved, now, 3_600, 60)

    assert 60 == len(chart["at"]) == len(chart["done"])
    assert [0.0, 6.0, 15.0] == chart["done"][-3:], "of the last minute 20 seconds have passed"
    assert int(now.replace(second=0).timestamp()) == chart["at"][-1]


def test_what_a_program_imports_is_named_by_what_it_is_too():
    """A browser keeps both for ever: the one must not meet another's older part."""
    assets = read_assets()
    for name in ("intake.js", "texts.js"):
        answer = assets.answer(name, "")
        assert answer is not None
        assert f' from "{assets.address("files.js")}";'.encode() in bytes(answer.body)


def test_packed_assets_are_the_same_when_unpacked():
    assets = read_assets()
    answer = assets.answer("retoma.css", "gzip, br")
    plain = assets.answer("retoma.css", "")

    assert answer is not None
    assert plain is not None
    assert bytes(plain.body) == gzip.decompress(bytes(answer.body))
    assert answer.headers["content-encoding"] == "gzip"
