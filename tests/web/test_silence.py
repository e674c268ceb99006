"""A proxy on the way keeps the stream for itself: the page is right all the same, because it asks."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.aids import world
from tests.web.chromium import browser, context
from tests.web.test_browser import post, serving, signed_in

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

ONCE = {"retoma-once": "1"}


@pytest.fixture
def someone() -> Iterator[Page]:
    with browser() as started, context(started) as theirs:
        yield theirs.new_page()


def test_a_page_that_hears_nothing_asks_every_five_seconds(tmp_path, someone):
    through = True

    def kept(route: Route) -> None:
        """What is asked for once goes through; a stream is never answered."""
        if through and "retoma-once" in route.request.headers:
            route.continue_()

    with serving(tmp_path, f"sqlite:///{tmp_path / 'work.db'}") as server:
        page = signed_in(someone, server)
        page.clock.install()
        page.route("**/live/**", kept)
        page.goto(f"{server.origin}/jobs")
        expect(page.locator("#rows tr")).to_have_count(0)
        job = post(server, "/api/jobs", {"kind": "count", "payload": 1})["id"]

        page.clock.fast_forward(16_000)
        expect(page.locator("#signal")).not_to_have_attribute("data-is", "asking")
        page.clock.fast_forward(10_000)

        expect(page.locator(f"#job-{job}")).to_be_visible()
        expect(page.locator("#signal")).to_have_text("asking every 5 s")

        # Then nothing is answered at all, neither yes nor no.
        through = False
        page.clock.fast_forward(40_000)
        page.clock.fast_forward(6_000)
        expect(page.locator("#signal")).to_have_attribute("data-is", "off")


async def test_a_page_as_it_is_now_is_given_to_whoever_may_look(database_url):
    async with world(database_url) as house:
        job = await house.app.submit("count", 1)

        answer = await house.viewer.get("/live/jobs", headers=ONCE)
        refused = await house.nobody.get("/live/jobs", headers=ONCE)

        assert "text/html; charset=utf-8" == answer.headers["content-type"]
        assert '<hx-partial hx-target="#rows" hx-swap="outerMorph">' in answer.text
        assert f'id="job-{job.id}"' in answer.text
        assert 401 == refused.status_code
