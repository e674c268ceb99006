"""Mission Control: the settings of the document (§8), "Parar agora", and what is told of trouble."""

import asyncio
import re

from retoma import Retoma
from retoma.apps.ads import APP, store
from retoma.apps.ads.pages.control import ControlScreen
from retoma.apps.ads.pages.presenters import concern_of
from retoma.engine.ports import Clock
from retoma.web.broadcast import nobody_asks
from retoma.web.pages.live import Screens
from tests.apps.ads.fakes import FakeWorker, FakeWriter
from tests.apps.ads.test_pages import site_of, text_of
from tests.apps.people import PT
from tests.engine.aids import eventually, running
from tests.web.test_more_pages import posted, told
from tests.web.test_pages import anext_with
from tests.web.test_sign_in import signed_in


async def test_every_setting_is_shown_under_its_name_and_changed_there(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        viewer = text_of(await site.viewer.get("/ads", headers=PT))
        for each in APP.knobs:
            assert f"<code>{each.name}</code>" in viewer, each.name
        assert "ask-knob" not in viewer

        browser, csrf = await signed_in(site, "admin")
        assert 'data-open="ask-knob"' in (await browser.get("/ads", headers=PT)).text
        change = {"name": "ads.polling_job", "value": "5"}
        told(await posted(browser, "/settings/change", csrf, **change))
        row = text_of(await browser.get("/ads", headers=PT)).split('id="knob-ads-polling_job"')[
            1
        ]
        assert "<b>5</b>" in row.split("</tr>")[0]
        bad = await posted(browser, "/settings/change", csrf, name="ads.polling_job", value="x")
        assert 422 == bad.status_code


async def test_no_proxy_is_told_of_and_parar_agora_cancels_what_runs(database_url, tmp_path):
    """ERROR501 for 15 minutes is a banner, as every worker in error is; what waits stays queued."""
    said = "Nenhum proxy disponível há 15 min"
    async with site_of(database_url, tmp_path, workers=[FakeWorker()], proxies=0) as site:
        house = site.house
        first, second = await house.add(2)
        await house.queue(first, second)
        await house.start()
        await house.drain()
        assert said not in text_of(await site.viewer.get("/ads", headers=PT))
        house.clock.advance(901)
        waiting = text_of(await site.viewer.get("/ads", headers=PT))
        assert said in waiting
        assert "Parar agora" not in waiting, "a viewer has no button"

        await house.change(f"UPDATE ads_missions SET status = 'running' WHERE id = '{first}'")  # noqa: S608
        await house.change(
            "UPDATE ads_missions SET checkpoint = 'armazenamento', scraped_at = clock_in(-901)"
        )
        unwritten = "Há anúncios esperando por um writer há 15 minutos (ERROR301)"
        assert unwritten in text_of(await site.viewer.get("/ads", headers=PT))
        await house.change("UPDATE ads_missions SET checkpoint = 'extracao'")
        assert unwritten not in text_of(await site.viewer.get("/ads", headers=PT))
        browser, csrf = await signed_in(site, "operator")
        shown = text_of(await browser.get("/ads", headers=PT))
        assert re.search(r'form="do-stop-now" data-ask="[^"]+">Parar agora<', shown)
        assert re.search(r'<form id="do-stop-now" [^>]*action="/ads/stop-now"', shown)
        told(await posted(browser, "/ads/stop-now", csrf))
        after = text_of(await browser.get("/ads", headers=PT))
        assert 'form="do-stop-now"' not in after
        assert said not in after
        missions = await house.rows(
            "SELECT id, status, canceled_by FROM ads_missions ORDER BY id"
        )
        assert missions == [(first, "canceled", "Bia"), (second, "queued", None)]
        await browser.aclose()


async def test_polling_ui_is_how_long_a_page_stays_as_it_is_without_an_event(
    database_url, tmp_path
):
    """§8.2. No event says that a runner is gone: the page says so after `polling_ui` all the same."""
    async with site_of(database_url, tmp_path, workers=[FakeWorker()]) as site:
        pages = site.site.state.pages
        assert (await concern_of(pages)).silence == 5
        await site.house.app.knobs.set("ads.polling_ui", 1, actor="ana")
        screen = ControlScreen(pages, site.view(), await concern_of(pages))
        screens = Screens(pages.house.broadcaster, Clock())
        hearing = await screens.watch(screen, nobody_asks, "Vera")
        first = (await anext_with(hearing, b"hx-partial")).decode()
        assert "Todos os workers" not in first
        await site.house.change("UPDATE ads_workers SET status = 'error'")  # no event tells
        async with asyncio.timeout(9):
            await anext_with(hearing, "Todos os workers estão em erro".encode())
        hearing.leave()
        await pages.house.broadcaster.close()


# — what keeps missions, in words, on the page of it all —

BADGE = '<span class="mark warn">{}</span>'


async def test_mission_control_says_why_nothing_goes_on(database_url, tmp_path):
    """No runner, no proxy, no writer, a writer away, every worker in error: a sentence and a badge each."""
    async with site_of(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as site:

        async def seen() -> str:
            return text_of(await site.viewer.get("/ads", headers=PT))

        page = await seen()
        assert "Nenhum executor está ativo" in page
        assert BADGE.format("sem executor") in page
        async with running(site.house.app, name="runner-1"):
            await eventually(lambda: _lives(site.house.app))
            page = await seen()
            assert "Nenhum executor está ativo" not in page
            assert "runner-1" in page
            assert "writer 1" in page
            assert BADGE.format("sem") not in page
        await site.house.change(
            "UPDATE pool_items SET state = 'off' WHERE pool = 'ads.proxies'"
        )
        await site.house.change("UPDATE ads_workers SET status = 'error'")
        await site.house.app.write(lambda tx: store.writer_away(tx, "WRT-000001", "ERROR302"))
        page = await seen()
        for sentence, badge in (
            ("Nenhum proxy está ativo (ERROR501)", "sem proxy"),
            ("Todos os workers estão em erro", "workers em erro"),
            ("O writer writer 1 não responde desde", "writer fora do ar"),
        ):
            assert sentence in page
            assert BADGE.format(badge) in page
        await site.house.change("UPDATE ads_writers SET active = FALSE")
        page = await seen()
        assert "Nenhum writer está ativo" in page
        assert BADGE.format("sem writer") in page


async def _lives(app: Retoma) -> bool:
    return any(each.living for each in await app.runners.list())


async def test_every_tab_of_the_bank_says_how_many_and_all_that_match_are_chosen(
    database_url, tmp_path
):
    """More than the fifty of a page, by the filter that is set."""
    async with site_of(database_url, tmp_path) as site:
        await site.house.add(60)
        other = await site.house.add(2)
        await site.house.queue(*other)
        page = text_of(await site.viewer.get("/ads/missions?status=novo", headers=PT))
        tabs = dict(re.findall(r'status=(\w+)"[^>]*>\w+ <b>(\d+)</b>', page))
        assert tabs["novo"] == "60"
        assert tabs["queued"] == "2"
        assert tabs["failed"] == "0"
        assert re.search(r">todas? <b>62</b>|>todos <b>62</b>", page), page[:3000]

        browser, csrf = await signed_in(site, "operator")
        form = text_of(await browser.get("/ads/missions?status=novo", headers=PT))
        assert 'name="filter_status" value="novo"' in form
        order = {"verb": "queue", "all": "1", "filter_status": "novo", "mission": other[0]}
        told(await posted(browser, "/ads/missions/orders", csrf, **order))

        counts = await site.house.rows("SELECT status, count(*) FROM missions GROUP BY status")
        assert counts == [("queued", 62)]
        bad = {**order, "filter_media_type": "radio"}
        assert (await posted(browser, "/ads/missions/orders", csrf, **bad)).status_code == 422


async def test_missions_that_are_imported_may_be_queued_at_once(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as site:
        browser, csrf = await signed_in(site, "operator")
        assert 'name="queue"' in text_of(await browser.get("/ads/import?what=missions"))
        text = "date_start,date_end,media_type,languages\n2025-01-01,2025-01-01,video,pt\n"
        form = {"what": "missions", "text": text, "verb": "apply", "queue": "1"}
        assert (await posted(browser, "/ads/import", csrf, **form)).status_code == 200

        assert await site.house.rows("SELECT status FROM missions") == [("queued",)]
