"""Pauses over the wire and on every page: who may, what is shown, and that it moves by itself."""

from html import unescape

from tests.web.aids import code_of, world
from tests.web.test_more_pages import posted
from tests.web.test_pages import HTML
from tests.web.test_sign_in import signed_in

EVERYWHERE = ("/", "/jobs", "/batches", "/dead", "/runners", "/audit", "/pauses")


async def test_pauses_are_put_listed_and_taken_back(database_url):
    async with world(database_url) as house:
        wanted = {"scope": "kind", "name": "count", "why": "the shop is closed"}
        put = await house.operator.put("/api/pauses", json=wanted)
        again = await house.admin.put("/api/pauses", json={**wanted, "why": "another"})
        listed = await house.viewer.get("/api/pauses")
        gone = [(await house.operator.delete("/api/pauses/kind/count")).json() for _ in "ab"]

        assert (200, wanted) == (
            put.status_code,
            {name: put.json()[name] for name in ("scope", "name", "why")},
        )
        assert put.json() == again.json()
        assert [put.json()] == listed.json()
        assert [
            {"paused": False, "changed": True},
            {"paused": False, "changed": False},
        ] == gone
        assert [] == (await house.viewer.get("/api/pauses")).json()


async def test_who_may_only_look_pauses_nothing_and_nobody_what_is_unknown(database_url):
    async with world(database_url) as house:
        wanted = {"scope": "kind", "name": "count"}
        refused = [
            await house.viewer.put("/api/pauses", json=wanted),
            await house.viewer.delete("/api/pauses/kind/count"),
            await house.operator.put("/api/pauses", json={**wanted, "name": "nobody"}),
            await house.operator.put("/api/pauses", json={**wanted, "scope": "batch"}),
        ]

        assert [403, 403, 404, 422] == [code_of(each)[0] for each in refused]
        assert [] == await house.app.pauses.all()


async def test_every_page_says_what_is_paused_since_when_and_by_whom(database_url):
    async with world(database_url) as house:
        before = (await house.viewer.get("/jobs", headers=HTML)).text
        await house.app.pauses.pause("kind", "count", "<b>closed</b>", actor="Ana")

        shown = [(await house.viewer.get(page, headers=HTML)).text for page in EVERYWHERE]
        kept = {**HTML, "retoma-once": "1"}
        shown.append((await house.viewer.get("/live/jobs", headers=kept)).text)

        assert 'id="paused-banner" aria-label="Paused" hidden' in before
        for page in shown:
            banner = page.partition('id="paused-banner"')[2].partition("</section>")[0]
            assert "kind count</strong>" in banner
            assert "by Ana (&lt;b&gt;closed&lt;/b&gt;)" in " ".join(banner.split())


async def test_an_operator_pauses_and_resumes_on_the_page(database_url):
    async with world(database_url) as house:
        browser, csrf = await signed_in(house)
        paused = await posted(
            browser, "/pauses/pause", csrf, what="kind count", why="for a while"
        )
        [held] = await house.app.pauses.all()
        page = unescape((await browser.get("/pauses", headers=HTML)).text)
        await posted(browser, "/pauses/resume", csrf, what="kind count")
        unknown = [
            await posted(browser, "/pauses/pause", csrf, what="kind nobody"),
            await posted(browser, "/pauses/pause", csrf, what="nonsense"),
        ]

        assert 200 == paused.status_code
        assert ("count", "for a while") == (held.name, held.why)
        assert 'value="kind count"' in page
        assert [] == await house.app.pauses.all()
        assert [404, 422] == [each.status_code for each in unknown]


async def test_what_is_paused_is_told_to_prometheus_and_no_line_of_it(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)
        line = 'retoma_queue_oldest_waiting_seconds{queue="count"}'
        before = (await house.viewer.get("/metrics")).text
        await house.app.pauses.pause("kind", "count")
        after = (await house.viewer.get("/metrics")).text

        assert line in before
        assert line not in after
        assert 'retoma_paused{name="count",scope="kind"} 1' in after
