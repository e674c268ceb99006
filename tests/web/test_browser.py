"""Mission Control in a real Chromium: what an operator sees, understands and repairs with a click."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Route, expect

from retoma import Retoma
from retoma.db import Transaction
from retoma.engine.store import alerts
from retoma.engine.store.alerts import Cause, Rule
from tests import nursery
from tests.cli.conftest import wait_for
from tests.web import screens
from tests.web.aids import ROOT_KEY
from tests.web.chromium import browser, context, violations
from tests.web.test_serve import LINK, Process, listening, process

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

KEYED = {"x-api-key": ROOT_KEY}
GATED = """

import asyncio
from pathlib import Path

@app.job
async def gated(ctx, gate: str) -> str:
    await ctx.progress(0.5, "before the gate")
    while not Path(gate).exists():
        await asyncio.sleep(0.05)
    return "through"
"""
HOSTILE = (
    "<h1>Loja</h1><script>parent.document.title = 'owned'; alert(1)</script>"
    "<img src=x onerror=alert(2)><svg onload=alert(3)></svg>"
    "<meta http-equiv=refresh content='0;url=/owned'><form action=/owned><button>go</button></form>"
    "<a href='javascript:alert(4)'>a</a></iframe></pre>"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all of these tests; each has a context of its own."""
    with browser() as started:
        yield started


@pytest.fixture
def someone(chromium: Browser) -> Iterator[Page]:
    with context(chromium) as theirs:
        yield theirs.new_page()


@contextmanager
def runner(folder: Path, url: str) -> Iterator["subprocess.Popen[bytes]"]:
    child = nursery.Born(
        [sys.executable, "-m", "retoma", "runner", "--app", "served:app", "--slots", "20"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]),
            "RETOMA_DATABASE_URL": url,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@contextmanager
def serving(folder: Path, url: str, *words: str) -> Iterator[Process]:
    with process(folder, url, *words) as server:
        (folder / "served.py").write_text((folder / "served.py").read_text() + GATED)
        yield listening(server)


def signed_in(page: Page, server: Process) -> Page:
    wait_for(lambda: LINK.search(server.said), "it printed no link")
    screens.enter(page, LINK.search(server.said)[0])  # type: ignore[index]
    expect(page.locator("#signal")).to_have_attribute("data-is", "on")
    return page


def post(server: Process, path: str, body: Any) -> Any:
    answer = httpx2.post(f"{server.origin}{path}", json=body, headers=KEYED, timeout=60)
    assert answer.is_success, answer.text
    return answer.json()


def batch_of(server: Process, payloads: list[Any], kind: str = "work") -> int:
    made = post(server, "/api/batches", {"kind": kind, "payloads": payloads, "name": "lote-42"})
    return int(made["id"])


def dead_again(server: Process, code: str) -> int:
    """How many jobs died of this code in a generation after their first."""
    url = f"{server.origin}/api/jobs?code={code}&limit=200"
    jobs = httpx2.get(url, headers=KEYED, timeout=60).json()["items"]
    return sum(1 for job in jobs if job["generation"] > 1)


def agree(page: Page) -> None:
    page.locator("#confirm button[value=yes]").click()


# — what moves —


def test_a_batch_of_200_moves_before_the_eyes_of_who_signed_in_by_the_link(
    database_url, tmp_path, someone
):
    with serving(tmp_path, database_url) as server:
        page = signed_in(someone, server)
        payloads: list[Any] = [{"gives": n} for n in range(180)]
        payloads += [{"dies": f"shop {n}", "code": "SHOP"} for n in range(12)]
        payloads += [{"dies": "x", "code": "OTHER"} for _ in range(8)]
        batch = batch_of(server, payloads)
        page.goto(f"{server.origin}/batches/{batch}")
        head = page.locator("#batch-head")
        expect(head).to_contain_text("0 / 200")
        page.evaluate("window.same = true")

        with runner(tmp_path, database_url):
            expect(head).to_contain_text("200 / 200", timeout=60_000)
            expect(head.locator(".state.big")).to_have_text("Finished with errors")
            # Retry the dead by code, from where they are seen.
            page.locator("#batch-codes tr", has_text="OTHER").get_by_role("button").click()
            agree(page)
            expect(page.locator("#notices")).to_contain_text("8 moved")
            page.goto(f"{server.origin}/dead")
            group = page.locator("#groups tr", has_text="SHOP")
            expect(group.locator("td.num").first).to_have_text("12")
            page.evaluate("window.same = true")

            # First a canary of five, which die again as new generations; the event draws them.
            group.get_by_role("button", name="Canary of 5").click()
            agree(page)
            expect(page.locator("#notices")).to_contain_text("5 moved")
            wait_for(lambda: dead_again(server, "SHOP") == 5, "the canary did not die again")

        assert page.evaluate("window.same") is True, "the page was loaded again"


def test_a_runner_killed_is_recovered_from_on_the_screen(tmp_path, someone):
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with serving(tmp_path, url) as server:
        page = signed_in(someone, server)
        job = post(server, "/api/jobs", {"kind": "gated", "payload": str(tmp_path / "gate")})
        page.goto(f"{server.origin}/jobs/{job['id']}")
        head, timeline = page.locator("#job-head"), page.locator("#job-timeline")
        with runner(tmp_path, url) as first:
            expect(head.locator(".state")).to_have_text("Running", timeout=60_000)
            expect(head).to_contain_text("50 %")
            first.send_signal(signal.SIGKILL)
            first.wait()
        with runner(tmp_path, url):
            expect(timeline.locator("li", has_text="Lost")).to_have_count(1, timeout=60_000)
            expect(head.locator(".state")).to_have_text("Running")
            (tmp_path / "gate").touch()
            expect(head.locator(".state")).to_have_text("Done", timeout=60_000)
        expect(page.locator("#job-attempts tbody tr")).to_have_count(2)


def test_pause_go_on_and_cancel_are_seen_by_their_events(tmp_path, someone):
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with serving(tmp_path, url) as server:
        page = signed_in(someone, server)
        batch = batch_of(server, [1, 2, 3], kind="count")
        page.goto(f"{server.origin}/batches/{batch}")
        state = page.locator("#batch-head .state.big")

        page.get_by_role("button", name="Pause").click()
        expect(state).to_have_text("Paused")
        page.get_by_role("button", name="Go on where it stopped").click()
        expect(state).to_have_text("In progress")
        page.get_by_role("button", name="Cancel").first.click()
        agree(page)

        expect(state).to_have_text("Finished")
        expect(page.locator("#rows .state.canceled")).to_have_count(3)


def test_a_restart_of_the_server_is_survived_with_what_was_ticked(tmp_path, someone):
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with serving(tmp_path, url) as server:
        page = signed_in(someone, server)
        batch_of(server, [1, 2, 3], kind="count")
        page.goto(f"{server.origin}/jobs?kind=count")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on")
        for job in ("1", "3"):
            page.locator(f"#job-{job} input").check()
        expect(page.locator("[data-ticked]")).to_have_text("2 ticked")
        port = server.origin.rpartition(":")[2]
        server.child.send_signal(signal.SIGTERM)
        assert 0 == server.child.wait(60), "an open page kept it"
        assert "Traceback" not in server.err.read_text()
        expect(page.locator("#signal")).to_have_text("no signal")

    with serving(tmp_path, url, "--port", port, "--no-link") as server:
        expect(page.locator("#signal")).to_have_text("live", timeout=60_000)
        post(server, "/api/jobs/2/cancel", {})
        expect(page.locator("#job-2 .state")).to_have_text("Canceled")
        assert page.locator("#job-1 input").is_checked()
        assert page.locator("#job-3 input").is_checked()
        assert not page.locator("#job-2 input").is_checked()

        # And what is ticked is what is meant.
        page.locator("#order").get_by_role("button", name="Cancel").click()
        agree(page)
        expect(page.locator("#rows .state.canceled")).to_have_count(3)
        expect(page.locator("#order")).to_be_hidden()


# — a house with a bit of everything —


@pytest.fixture(scope="module")
def furnished(
    tmp_path_factory: pytest.TempPathFactory, chromium: Browser
) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Where it is, its ids, and the cookies of somebody who came in."""
    url = f"sqlite:///{tmp_path_factory.mktemp('house') / 'work.db'}"
    with screens.house(url, hostile=HOSTILE) as (origin, link, ids), context(chromium) as admin:
        screens.enter(admin.new_page(), link)
        yield origin, {**ids, "url": url}, admin.cookies()


@contextmanager
def visiting(
    chromium: Browser, furnished: tuple[str, dict[str, Any], Any], **how: Any
) -> Iterator[tuple[BrowserContext, Page]]:
    _, _, cookies = furnished
    with context(chromium, **how) as theirs:
        theirs.add_cookies(cookies)
        yield theirs, theirs.new_page()


def test_axe_finds_nothing_on_any_page(chromium, furnished):
    origin, ids, _ = furnished
    found = {}
    with visiting(chromium, furnished, language="pt_BR") as (_, page):
        for name, address in {**screens.PAGES, "sign-in": "/sign-in"}.items():
            page.emulate_media(color_scheme="light")
            page.goto(origin + address.format(**ids))
            found[name] = violations(page)
            # A theme changes colours alone.
            page.emulate_media(color_scheme="dark")
            found[name] += violations(page, "color-contrast")

    assert {} == {name: wrong for name, wrong in found.items() if wrong}


def test_no_page_is_wider_than_a_phone_nor_breaks_its_own_rules(chromium, furnished):
    """Also what the policy of a page forbids is not tried: the console stays empty."""
    origin, ids, _ = furnished
    said: list[str] = []
    wide = []
    with visiting(chromium, furnished, phone=True, language="pt_BR") as (_, page):
        page.on("console", lambda message: said.append(f"{page.url} {message.text}"))
        page.on("pageerror", lambda error: said.append(f"{page.url} {error}"))
        for address in screens.PAGES.values():
            page.goto(origin + address.format(**ids))
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append(address)

    assert [] == wide
    # Pages that are meant to be answered so, and what a hostile page was kept from.
    meant = ("status of 422", "status of 404", "?evidence=")
    assert [] == [line for line in said if not any(each in line for each in meant)]


def test_row_22_a_hostile_snapshot_executes_nothing(chromium, furnished):
    origin, ids, _ = furnished
    said: list[str] = []
    asked: list[str] = []

    def spoken(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    with visiting(chromium, furnished) as (_, page):
        page.on("dialog", spoken)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{origin}/jobs/{ids['dead']}?evidence={ids['page']}")
        frame = page.frame_locator("iframe.frame")
        expect(frame.locator("h1")).to_have_text("Loja")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on")
        title = page.title()

    assert [] == said
    assert "owned" not in title
    assert not [
        address for address in asked if "owned" in address or not address.startswith(origin)
    ]


def test_a_slow_way_to_a_script_keeps_no_page_from_its_stream(chromium, furnished):
    origin, _, _ = furnished

    def late(route: Route) -> None:
        page.wait_for_timeout(1_000)
        route.continue_()

    with visiting(chromium, furnished) as (_, page):
        page.route("**/hx-sse*", late)
        page.goto(f"{origin}/jobs")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on", timeout=60_000)


def test_a_minute_without_an_event_is_said_and_a_stream_that_never_began_is_asked_for(
    chromium, furnished
):
    origin, ids, _ = furnished
    with visiting(chromium, furnished, language="pt_BR") as (_, page):
        page.clock.install()
        page.route("**/live/**", lambda route: route.abort(), times=1)
        page.goto(f"{origin}/batches/{ids['slow']}")
        expect(page.locator("#signal")).to_have_text("sem sinal")
        page.clock.fast_forward(6_000)
        expect(page.locator("#signal")).to_have_text("ao vivo")
        warning = page.locator("[data-silence]")
        expect(warning).to_be_hidden()

        page.clock.fast_forward(61_000)

        expect(warning).to_contain_text("Nenhum evento há 60 segundos")
        for name in ("Continuar de onde parou", "Reprocessar apenas erros"):
            expect(warning.get_by_role("button", name=name)).to_be_visible()
        page.goto(f"{origin}/batches/{ids['batch']}")  # finished: nothing is expected of it
        page.clock.fast_forward(61_000)
        page.clock.run_for(2_000)
        expect(page.locator("[data-silence]")).to_be_hidden()


def test_language_and_theme_are_switched_and_kept(chromium, furnished):
    origin, ids, _ = furnished
    with visiting(chromium, furnished, language="en") as (theirs, page):
        page.goto(f"{origin}/jobs?state=dead")
        expect(page.locator("h1")).to_have_text("Jobs")
        page.get_by_role("button", name="PT").click()
        expect(page.get_by_role("link", name="Cartas mortas")).to_be_visible()
        assert page.url.endswith("/jobs?state=dead")
        page.get_by_role("button", name="Escuro").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        again = theirs.new_page()
        again.goto(f"{origin}/batches/{ids['batch']}")
        expect(again.locator("html")).to_have_attribute("data-theme", "dark")
        expect(again.get_by_role("button", name="Reprocessar apenas erros")).to_be_visible()


def test_a_job_is_retried_with_the_keyboard_alone(chromium, furnished):
    """Every button is reached by Tab, in the order it is read; a question is answered by Enter."""
    origin, ids, _ = furnished
    with visiting(chromium, furnished) as (_, page):
        page.goto(f"{origin}/jobs/{ids['parked']}")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on")
        wanted = page.evaluate(
            "[...document.querySelectorAll('main button, main a')]"
            ".filter((each) => each.checkVisibility()).length"
        )
        reached = set()
        for _ in range(200):
            page.keyboard.press("Tab")
            at = page.evaluate(
                "[...document.querySelectorAll('main button, main a')].indexOf(document.activeElement)"
            )
            reached |= {at} - {-1}
            if len(reached) == wanted:
                break
        assert wanted == len(reached)

        page.get_by_role("button", name="Cancel").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#confirm")).to_be_visible()
        page.locator("#confirm button[value=yes]").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#job-head .state")).to_have_text(re.compile("Canceled"))


def test_what_holds_work_back_is_changed_and_the_event_shows_it(chromium, furnished):
    """A dialog stands outside of what is drawn anew, and knows which row it was opened from."""
    origin, _, _ = furnished
    live = ("data-is", "on")
    with visiting(chromium, furnished) as (_, page):
        page.goto(f"{origin}/gates")
        expect(page.locator("#signal")).to_have_attribute(*live)
        page.locator("#gates-breakers button", has_text="Open").focus()
        page.keyboard.press("Enter")
        page.locator("#ask-open textarea").fill("it is <b>down</b>")
        page.locator("#ask-open .primary").click()
        expect(page.locator("#ask-open")).to_be_hidden()
        expect(page.locator("#gates-breakers .state.dead")).to_have_count(2)
        expect(page.locator("#gates-breakers")).to_contain_text("it is <b>down</b>")
        user = page.locator("#gates-limits tr", has_text="user 7")
        user.locator("button").click()
        expect(page.locator("#ask-limit [name=key]")).to_have_value("user 7")
        page.locator("#ask-limit [name=cap]").fill("9")
        page.keyboard.press("Enter")
        expect(user).to_contain_text("0 / 9")

        page.goto(f"{origin}/pools?pool=proxies")
        expect(page.locator("#signal")).to_have_attribute(*live)
        for row in (2, 3):
            page.locator("#rows .tick input").nth(row).check()
        expect(page.locator("#order [data-ticked]")).to_have_text("2 ticked")
        page.locator("#order [name=why]").fill("checked by hand")
        page.locator("#order button[value=off]").click()
        expect(page.locator("#rows .state.dead")).to_have_count(3)
        expect(page.locator("#order")).to_be_hidden()


def test_the_strip_of_alerts_is_drawn_by_what_happens_to_them(chromium, furnished):
    """Raised elsewhere, known here, over elsewhere: no page is loaded anew."""
    origin, ids, _ = furnished
    with visiting(chromium, furnished) as (_, page):
        page.goto(f"{origin}/")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on")
        page.evaluate("window.same = true")
        row = page.locator("#board-alerts tr", has_text="batch 7007 has finished: 3 done")
        expect(row).to_have_count(0)

        beside(ids["url"], lambda tx: alerts.raise_alert(tx, FINISHED, {"done": 3}))
        expect(row).to_be_visible()
        row.get_by_role("button", name="I know of it").click()
        expect(row.get_by_role("button", name="I know of it")).to_have_count(0)
        expect(row.locator(".name")).to_have_text("Ana")
        beside(ids["url"], lambda tx: alerts.close_alert(tx, FINISHED))
        expect(row).to_have_count(0)
        assert page.evaluate("window.same")


def test_a_knob_is_changed_and_reset_and_the_event_shows_it(chromium, furnished):
    origin, _, _ = furnished
    with visiting(chromium, furnished) as (_, page):
        page.goto(f"{origin}/settings")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on")
        row = page.locator("#changing tr", has_text="RETOMA_ALERT_STUCK")
        change = row.get_by_role("button", name="Change alert_stuck")
        change.click()
        asked = page.locator("#ask-knob [name=value]")
        expect(asked).to_have_value("10")
        asked.fill("many")
        page.keyboard.press("Enter")
        expect(page.locator("#notices")).to_contain_text("a whole number from 0 to 1000000")
        change.click()
        asked.fill("7")
        page.keyboard.press("Enter")
        expect(row.locator("code.long")).to_have_text("7")
        expect(row).to_contain_text("changed here")
        row.get_by_role("button", name="Reset alert_stuck").click()
        expect(row.locator("code.long")).to_have_text("10")


FINISHED = Cause(Rule.BATCH, "7007")


def beside(url: str, change: Callable[[Transaction], object]) -> None:
    """What another process would have done; this one has a browser's loop."""

    async def done() -> None:
        async with Retoma(url) as app:
            await (await app.database()).write(change, verb="test")

    thread = Thread(target=lambda: asyncio.run(done()))
    thread.start()
    thread.join(60)


def test_a_key_is_shown_once_and_stays_until_it_is_closed(chromium, furnished):
    origin, _, _ = furnished
    with visiting(chromium, furnished) as (_, page):
        page.clock.install()
        page.goto(f"{origin}/people")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on")
        page.get_by_role("button", name="Create a key").first.click()
        page.locator("#ask-key [name=person]").fill("robot")
        page.locator("#ask-key .primary").click()
        shown = page.locator(".notice pre")
        expect(shown).to_contain_text("retoma_")
        expect(page.locator("#people-keys")).to_contain_text("robot")
        page.clock.fast_forward(60_000)
        expect(shown).to_be_visible()
        page.locator("[data-notice] [data-close]").click()
        expect(shown).to_have_count(0)


def test_who_means_all_that_match_is_told_how_many_first(tmp_path, someone):
    with serving(tmp_path, f"sqlite:///{tmp_path / 'work.db'}") as server:
        page = signed_in(someone, server)
        for n in range(3):
            post(server, "/api/jobs", {"kind": "count", "payload": n})
        page.goto(f"{server.origin}/jobs?kind=count")
        page.locator("#rows .tick input").first.check()
        page.get_by_label("all that match").check()
        page.locator("#order button[value=cancel]").click()

        expect(page.locator("#confirm-text")).to_contain_text("3 match.")
        agree(page)
        expect(page.locator("#notices")).to_contain_text("3 moved")
