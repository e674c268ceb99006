"""Mission Control: the settings of the document (§8), "Parar agora", and what is told of trouble."""

import re

from retoma.apps.ads import APP
from tests.apps.ads.fakes import FakeWorker
from tests.apps.ads.test_pages import site_of, text_of
from tests.apps.people import PT
from tests.web.test_more_pages import posted, told
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
