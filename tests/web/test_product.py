"""Mission Control as one product: the board is home, every page says where it is, the first day is short."""

import re
from datetime import UTC, datetime, timedelta

from retoma import Retoma
from retoma.db import Transaction
from retoma.engine.query import Minute
from retoma.engine.rules.states import State
from retoma.engine.store import alerts
from retoma.engine.store.alerts import Cause, Rule
from retoma.manifest import Application
from retoma.web import build_site
from retoma.web.pages.assets import ICONS, SYMBOL, read_assets
from retoma.web.pages.rooms import owns, rooms_of
from tests.web.aids import PATIENT, ROOT_KEY, client, set_up, world
from tests.web.test_sign_in import FORM, signed_in

HTML = {"Accept": "text/html", "Accept-Language": "en"}
NOW = datetime(2026, 11, 16, 12, 0, 30, tzinfo=UTC)
SHOP = Application(
    name="shop",
    title="Shop",
    menu=[("Orders", "/shop/orders"), ("Jobs of the shop", "/jobs")],
    schedules=[("shop.tidy", "0 4 * * *")],
)


async def test_the_three_sentences_of_the_first_day_go_when_they_were_read(database_url):
    """Kept by the browser alone, by a form that needs no program."""
    async with world(database_url) as house:
        browser, _ = await signed_in(house)
        first = (await browser.get("/", headers=HTML)).text
        elsewhere = (await browser.get("/jobs", headers=HTML)).text
        read = await browser.post(
            "/preferences", data={"tour": "over", "next": "/"}, headers=FORM
        )
        then = (await browser.get("/", headers=HTML)).text

        tour = re.search(r'<section class="card tour".*?</section>', first, re.DOTALL)
        assert tour
        assert 3 == tour[0].count("<li>")
        assert "tour-title" not in elsewhere + then
        assert (303, "/") == (read.status_code, read.headers["location"])
        await browser.aclose()


async def test_a_title_says_what_it_is_and_where(database_url):
    async with Retoma(database_url) as app:
        site = build_site(app, set_up(database_url), [SHOP], bound=PATIENT)
        admin = client(site, ROOT_KEY)
        seen = {
            path: re.search("<title>(.*?)</title>", (await admin.get(path, headers=HTML)).text)
            for path in ("/", "/batches", "/jobs", "/jobs/7")
        }

        assert {
            "/": "Board · retoma",
            "/batches": "Batches · retoma",
            "/jobs": "Jobs · Shop · retoma",
            "/jobs/7": "Not found · Shop · retoma",
        } == {path: found and found[1] for path, found in seen.items()}
        await admin.aclose()


async def test_an_application_that_has_done_nothing_says_how_to_begin(database_url):
    async with Retoma(database_url) as app:
        site = build_site(app, set_up(database_url), [SHOP], bound=PATIENT)
        admin = client(site, ROOT_KEY)
        board = (await admin.get("/", headers=HTML)).text

        assert 'How to begin<span class="hidden"> Shop' in board
        assert board.count('href="/shop/orders"') == 3  # the menu, the card, how to begin
        await admin.aclose()


def test_a_card_counts_what_its_application_does():
    """Upkeep by the clock is none of it, nor is what a neighbour does whose name begins alike."""
    counts = {
        "shop.sell": {State.RUNNING: 2, State.DEAD: 1},
        "shop.tidy": {State.DONE: 99},
        "shopping.list": {State.RUNNING: 50},
    }
    moved = [
        Minute(NOW - timedelta(minutes=back), kind, state, jobs)
        for back, kind, state, jobs in (
            (1, "shop.sell", State.DONE, 30),
            (60, "shop.sell", State.DONE, 15),
            (2, "shop.sell", State.DEAD, 7),
            (3, "shop.tidy", State.DONE, 500),
        )
    ]

    [room] = rooms_of([SHOP, Application(name="silent")], counts, moved, NOW)

    assert (2, 1, 0) == tuple(
        room.counts[state] for state in (State.RUNNING, State.DEAD, State.DONE)
    )
    assert 45 == room.done
    heights = [point.split(",")[1] for point in room.line.split()]
    assert ["50", *["100"] * 58, "0"] == heights
    assert [True, False, False] == [owns(SHOP, kind) for kind in counts]


async def test_what_broke_stands_before_what_has_finished(database_url):
    """Also where so much has finished since that it would not fit."""
    async with world(database_url) as house:
        await (await house.app.database()).write(_raise, verb="test")
        board = (await house.viewer.get("/", headers=HTML)).text

        rules = re.findall(r'<span class="state [a-z]*">(\w+)</span></td><td><a', board)
        assert [Rule.NO_RUNNER, *[Rule.BATCH] * 19] == rules
        assert "16 more that ask nothing of anybody" in board


def _raise(tx: Transaction) -> None:
    alerts.raise_alert(tx, Cause(Rule.NO_RUNNER, "default"), {"waited": 1900})
    for batch in range(40):
        alerts.raise_alert(tx, Cause(Rule.BATCH, str(batch)), {"done": 3})


def test_every_icon_that_a_template_names_is_drawn():
    """Whoever is not drawn, such as an application of somebody else, has the one of all."""
    assets = read_assets()
    drawn = {name.decode() for name in SYMBOL.findall(_sprite())}

    assert {"ads", "quotes", "documents", "matches", "embeddings", "engine"} <= drawn
    assert '#app"' in assets.icon("sixth")
    assert '#ads"' in assets.icon("ads")
    assert 'aria-hidden="true"' in assets.icon("ads")


def _sprite() -> bytes:
    answer = read_assets().answer(ICONS, "")
    assert answer is not None
    return bytes(answer.body)
