"""The ads orchestrator in Mission Control: by the document's labels, live, for whoever may."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from typing import Any

import httpx2

from retoma.apps.ads import APP, store
from retoma.apps.ads.model import WorkerStatus
from retoma.apps.ads.pages.control import ControlScreen
from retoma.apps.ads.pages.missions import PAGE, MissionScreen
from retoma.apps.ads.pages.presenters import CONCERN, path_of
from retoma.apps.ads.pages.things import PAGE as THINGS
from retoma.engine.query.tail import Slice
from retoma.web.pages.live import changes
from tests.apps.ads.aids import World, world
from tests.apps.ads.fakes import KEY, FakeWorker, FakeWriter
from tests.apps.ads.test_operator import Telling
from tests.apps.ads.test_steps import under_way
from tests.apps.ads.test_true_codes import first
from tests.apps.people import EN, PT, Site, pages
from tests.web.aids import client
from tests.web.test_more_pages import posted, told
from tests.web.test_pages import HOSTILE, told_of
from tests.web.test_sign_in import signed_in

LISTS = ("/ads", "/ads/missions", "/ads/workers", "/ads/proxies", "/ads/writers")
DAY = {"date_start": "2025-01-15", "date_end": "2025-01-16", "media_type": "video"}


@asynccontextmanager
async def site_of(url: str, folder: Any, **around: Any) -> AsyncIterator[Site[World]]:
    async with world(url, folder, **around) as house, pages(house, APP, url) as site:
        yield site


def text_of(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


# — what is seen —


async def test_every_page_is_drawn_for_every_role_in_both_languages(database_url, tmp_path):
    """With nothing to show at all; then with names that are markup, and no secret anywhere."""
    async with site_of(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as site:
        for path in LISTS:
            empty = await site.viewer.get(f"{path}", headers=PT)
            assert empty.status_code == 200, (path, empty.text)
        [mission] = await site.house.add()
        await site.house.queue(mission)
        await site.house.start()
        await site.house.drain()
        for table in ("ads_workers", "ads_writers", "ads_proxies"):
            name = HOSTILE.replace("'", "''")
            await site.house.change(f"UPDATE {table} SET name = '{name}'")  # noqa: S608
        seen = {}
        for who, headers in ((site.admin, PT), (site.operator, EN), (site.viewer, PT)):
            for path in (*LISTS, f"/ads/missions/{mission}"):
                answer = await who.get(path, headers=headers)
                assert answer.status_code == 200, (path, answer.text)
                assert "<script>alert" not in answer.text
                assert "CANARY" not in answer.text
                assert not re.search(r"\sstyle=|\son\w+=", answer.text), path
                seen[path] = unescape(answer.text)
        for path in ("/ads/workers", "/ads/proxies", "/ads/writers"):
            assert HOSTILE in seen[path], path
        detail = seen[f"/ads/missions/{mission}"]
        for word in ("completed", "finalizado", "mission_completed", "scrape_started", "1.500"):
            assert word in detail, word
        row = await site.house.rows("SELECT extraction, storage FROM ads_missions")
        assert all(f'href="/jobs/{job}"' in detail for job in row[0])


async def test_menu_errors_and_settings_are_where_people_look_for_them(database_url, tmp_path):
    """The menu comes from the manifest, is open where one is, and marks the nearest page; what is not there is told as a
    page; session_limit leads an admin to where it is changed."""
    async with site_of(database_url, tmp_path) as site:
        for path, word in (("/ads", "Mission Control"), ("/ads/missions", "Banco de Missões")):
            drawn = text_of(await site.viewer.get(path, headers=PT))
            current = re.findall(r'<a href="([^"]*)" aria-current="page">([^<]*)<', drawn)
            assert current == [(path, word)]
        [mission] = await site.house.add()
        below = text_of(await site.viewer.get(f"/ads/missions/{mission}", headers=EN))
        assert 'href="/ads/missions" aria-current="page">Mission bank<' in below
        board = text_of(await site.viewer.get("/", headers=EN))
        assert 'href="/" aria-current="page"' in board
        opened = '<a class="section" href="{}" aria-current="true">'
        closed = '<a class="section" href="{}">'
        assert closed.format("/jobs") in board
        assert closed.format("/ads") in board
        assert 'href="/ads/workers"' not in board
        assert opened.format("/ads") in below
        assert closed.format("/jobs") in below
        assert 'href="/ads/workers"' in below
        assert 'href="/schedules"' not in below

        wrong = {
            "/ads/missions/MIS-999999": 404,
            "/ads/missions?status=nonsense": 422,
            "/ads/missions?cursor=forged": 422,
        }
        for path, status in wrong.items():
            answer = await site.viewer.get(path, headers=PT)
            assert answer.status_code == status, path
            assert "text/html" in answer.headers["content-type"]
        nobody = client(site.site)
        for path in LISTS:
            assert (await nobody.get(f"/live{path}")).status_code == 401
        await nobody.aclose()

        await site.app.knobs.set("ads.session_limit", 7, actor="Ana")
        admin = text_of(await site.admin.get("/ads", headers=PT))
        viewer = text_of(await site.viewer.get("/ads", headers=PT))
        shown = '<b>7</b><span title="session_limit">Missões por sessão</span>'
        assert f'<a class="tile" href="/settings">{shown}' in admin
        assert f'<div class="tile">{shown}' in viewer
        assert '<b>2</b><span title="max_retries">' in viewer


def test_the_path_of_a_mission_shows_what_is_passed_reached_and_ahead():
    def looks(checkpoint: str | None, status: str) -> list[str]:
        return [look for _, look in path_of(checkpoint, status)]

    assert looks(None, "novo") == ["ahead"] * 4
    assert looks("extracao", "running") == ["saved", "begun", "ahead", "ahead"]
    assert looks("armazenamento", "failed") == ["saved", "saved", "failed", "ahead"]
    assert looks("finalizado", "completed") == ["saved"] * 4


# — Mission Control —


async def test_iniciar_and_parar_by_their_labels_and_a_banner_while_missions_wait(
    database_url, tmp_path
):
    two = [FakeWorker(), FakeWorker()]
    async with site_of(database_url, tmp_path, workers=two, proxies=2) as site:
        await site.house.queue(*await site.house.add(2))
        browser, csrf = await signed_in(site, "operator")
        before = text_of(await browser.get("/ads", headers=PT))
        assert "Há missões à espera e o orquestrador está parado: 2." in before
        assert re.search(r'form="do-start"[^>]*>Iniciar<', before)
        assert 'href="/ads/missions?status=novo">Selecionar Missões<' in before

        for _ in range(2):  # a second click is a no-op
            told(await posted(browser, "/ads/start", csrf))
        started = text_of(await browser.get("/ads", headers=PT))
        assert "Há missões à espera" not in started
        assert re.search(r'form="do-stop"[^>]*>Parar<', started)
        assert "Iniciar<" not in started
        told(await posted(browser, "/ads/stop", csrf))
        stopped = text_of(await browser.get("/ads", headers=PT))
        assert re.search(r'form="do-start"[^>]*>Iniciar<', stopped)
        assert (await site.house.rows("SELECT wish, changed_by FROM ads_orchestrator"))[0] == (
            "stopped",
            "Bia",
        )
        await browser.aclose()

        said = "Todos os workers estão em erro"
        await site.house.change("UPDATE ads_workers SET status = 'error' WHERE name = 'W1'")
        assert said not in text_of(await site.viewer.get("/ads", headers=PT))
        await site.house.change("UPDATE ads_workers SET status = 'error'")
        assert said in text_of(await site.viewer.get("/ads", headers=PT))


async def test_a_row_is_drawn_by_the_same_partial_first_and_ever_after(database_url, tmp_path):
    """What moves goes out as the rows that moved: the worker's, the mission's."""
    async with site_of(
        database_url, tmp_path, workers=[FakeWorker(), FakeWorker()], proxies=2
    ) as site:
        missions = await site.house.add(2)
        await site.house.queue(*missions)
        await site.house.change("UPDATE ads_missions SET status = 'running'")
        pages = site.site.state.pages
        screen = ControlScreen(pages, site.view())
        before = await screen.draw()
        page = (await site.operator.get("/ads", headers=PT)).text
        assert all(each.html in page for each in before)
        assert [each.id for each in changes(before, await screen.draw())] == []

        first, worker = missions[0], next(iter(site.house.workers))
        await site.house.change(
            f"UPDATE ads_missions SET checkpoint = 'extracao' WHERE id = '{first}'"  # noqa: S608
        )
        await site.house.change(
            f"UPDATE ads_workers SET status = '{WorkerStatus.SCRAPING}', mission = '{first}'"  # noqa: S608
            f" WHERE id = '{worker}'"
        )
        moved = {each.id: each.html for each in changes(before, await screen.draw())}
        assert moved.keys() == {f"worker-{worker}", f"underway-{first}"}
        assert "scraping" in moved[f"worker-{worker}"]
        assert "extracao" in moved[f"underway-{first}"]


async def test_the_stream_moves_the_page_by_the_events_of_the_three_kinds(
    database_url, tmp_path
):
    for kind in (store.SESSION, store.EXTRACTION, store.STORAGE, store.HEALTH):
        assert CONCERN.met(Slice([replace(told_of(job=1), kind=kind)], [], None))
    assert not CONCERN.met(Slice([replace(told_of(job=1), kind="prices.quote")], [], None))
    async with site_of(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as site:
        [mission] = await site.house.add()
        screen = MissionScreen(site.site.state.pages, site.view(), mission)
        empty = await screen.draw()
        assert "Nada aconteceu ainda" in empty[-1].html
        await site.house.queue(mission)
        await site.house.start()
        await site.house.drain()
        kinds = {kind for (kind,) in await site.house.rows("SELECT DISTINCT kind FROM jobs")}
        assert kinds <= {*CONCERN.kinds}
        after = {each.id: each.html for each in changes(empty, await screen.draw())}
        assert after.keys() == {"mission-head", "mission-facts", "mission-timeline"}
        once = await site.viewer.get(
            f"/live/ads/missions/{mission}", headers={"Retoma-Once": "1"}
        )
        assert once.text.count("<hx-partial") == 5  # with the banner of what is paused

        # What only a person can repair is said where people look.
        [writer] = site.house.writers.values()
        writer.failed = writer.total
        await site.house.queue(*await site.house.add())
        await site.house.drain()
        waits = await site.house.rows("SELECT id FROM jobs WHERE state = 'parked'")
        shown = text_of(await site.viewer.get("/ads", headers=PT))
        assert f'href="/jobs/{waits[0][0]}">espera por uma pessoa<' in shown


# — the Banco de Missões —


async def test_a_mission_is_made_queued_and_canceled_on_the_pages(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as site:
        browser, csrf = await signed_in(site, "operator")
        made = told(await posted(browser, "/ads/missions", csrf, **DAY, languages="pt, en"))
        assert "MIS-000001" in made
        bank = text_of(await browser.get("/ads/missions?status=novo", headers=PT))
        assert "2025-01-15 → 2025-01-16" in bank
        assert "video · pt, en" in bank
        assert ">Adicionar à fila<" in bank
        assert ">Cancelar<" in bank

        for bad in (
            {**DAY, "languages": ""},
            {**DAY, "date_end": "2025-01-01", "languages": "pt"},
            {**DAY, "date_start": "soon", "languages": "pt"},
        ):
            refused = await posted(browser, "/ads/missions", csrf, **bad)
            assert refused.status_code == 422, refused.text
        nonsense = {**DAY, "date_start": "15/01/2025", "languages": "português"}
        refused = await posted(browser, "/ads/missions", csrf, **nonsense)
        for why in ("is not a day such as 2026-01-31", "is no language such as pt or pt-BR"):
            assert why in refused.text, why
        orders = "/ads/missions/orders"
        assert (await posted(browser, orders, csrf, verb="queue")).status_code == 422
        one: dict[str, Any] = {"mission": ["MIS-000001"]}
        assert (await posted(browser, orders, csrf, verb="fly", **one)).status_code == 422

        await site.house.add()
        both: dict[str, Any] = {"mission": ["MIS-000002", "MIS-000001"]}
        told(await posted(browser, orders, csrf, verb="queue", **both))
        again = await posted(browser, orders, csrf, verb="queue", **both)
        assert again.status_code == 409
        queued = await site.house.rows("SELECT status, queued_by FROM ads_missions")
        assert queued == [("queued", "Bia"), ("queued", "Bia")]

        told(await posted(browser, orders, csrf, verb="cancel", **one))
        some = told(await posted(browser, orders, csrf, verb="cancel", **both))
        assert "2" in some
        ended = await site.house.rows("SELECT status, canceled_by FROM ads_missions")
        assert ended == [("canceled", "Bia"), ("canceled", "Bia")]
        plain = await browser.post(
            orders,
            data={"csrf": csrf, "verb": "again", "next": "/ads/missions/MIS-000001", **one},
            headers={**PT, "Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"},
        )
        assert (plain.status_code, plain.headers["location"]) == (
            303,
            "/ads/missions/MIS-000001",
        )

        # One that has ended keeps nobody from canceling the others.
        first, second = await site.house.add(2)
        await site.house.queue(first)
        said = told(await posted(browser, orders, csrf, verb="cancel", mission=[first, second]))
        assert (
            "cancellation requested: 1 of 2" in said or "cancelamentos pedidos: 1 de 2" in said
        )
        alone = await posted(browser, orders, csrf, verb="cancel", mission=second)
        assert alone.status_code == 409
        nobody = await posted(browser, orders, csrf, verb="cancel", mission="MIS-999999")
        assert nobody.status_code == 404
        await browser.aclose()


async def test_the_bank_is_read_page_by_page(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as site:
        ids = await site.house.add(PAGE + 3)
        first = text_of(await site.viewer.get("/ads/missions?status=novo", headers=EN))
        [following] = re.findall(r'href="([^"]+)" rel="next"', first)
        second = text_of(await site.viewer.get(following, headers=EN))
        rows = re.compile(r'<tr id="mission-(MIS-\d+)"')
        assert rows.findall(first) + rows.findall(second) == sorted(ids, reverse=True)
        assert 'rel="next"' not in second
        other = following.replace("novo", "queued")
        assert (await site.viewer.get(other, headers=EN)).status_code == 422


async def test_refused_ads_are_shown_and_sent_again_and_a_cancel_is_told_until_confirmed(
    database_url, tmp_path
):
    """H-64 on the page: a badge, each refused ad with its reason, "Reenviar recusados"."""
    writer = Telling(statuses=["partial"])
    async with site_of(
        database_url, tmp_path, workers=[FakeWorker()], writers=[writer]
    ) as site:
        [mission] = await site.house.add()
        await site.house.queue(mission)
        await site.house.start()
        await site.house.drain()
        path = f"/ads/missions/{mission}"
        seen = text_of(await site.viewer.get(path, headers=PT))
        for word in (
            ">13 anúncios recusados<",
            "duplicate key",
            "ad42",
            "o primeiro de 13",
        ):
            assert word in seen, word
        assert "Reenviar recusados" not in seen
        browser, csrf = await signed_in(site, "operator")
        button = re.compile(r'form="do-resend" data-ask="[^"]+">Reenviar recusados<')
        bank = text_of(await browser.get("/ads/missions", headers=PT))
        assert re.search(r'value="resend" data-ask="[^"]+">Reenviar recusados<', bank)
        assert button.search(text_of(await browser.get(path, headers=PT)))

        order = {"verb": "resend", "mission": mission}
        told(await posted(browser, "/ads/missions/orders", csrf, **order))
        again = await posted(browser, "/ads/missions/orders", csrf, **order)
        assert again.status_code == 409
        said = "Cancelamento não confirmado"
        assert said not in text_of(await browser.get(path, headers=PT))
        assert await site.house.cancel(mission) == "canceled"
        assert said in text_of(await browser.get(path, headers=PT))
        await site.house.drain()
        over = text_of(await browser.get(path, headers=PT))
        assert said not in over
        assert not button.search(over), "a canceled mission is not sent again"
        await browser.aclose()


# — workers, proxies, writers —


async def test_what_keeps_a_session_from_ending_is_said_beside_its_worker(
    database_url, tmp_path
):
    """ "Cancelamento não confirmado", and the two ways out: "Resetar" and "realocar"."""
    async with site_of(database_url, tmp_path, workers=[FakeWorker()]) as site:
        await site.house.queue(*await site.house.add())
        await site.house.start()
        await site.house.change("UPDATE ads_workers SET status = 'error'")
        await site.house.change(f"UPDATE ads_sessions SET proxy = '{site.house.proxies[0]}'")  # noqa: S608
        await site.house.change(
            "UPDATE jobs SET note = 'Cancelamento não confirmado' WHERE kind = 'ads.session'"
        )
        for who, may in ((site.operator, True), (site.viewer, False)):
            drawn = text_of(await who.get("/ads/workers", headers=PT))
            assert "Cancelamento não confirmado" in drawn
            for word in ("Worker perdido: realocar", "Resetar", "Testar", "Testar todos"):
                assert (f">{word}<" in drawn) == may, word
            assert ">Editar<" not in drawn
        drawn = text_of(await site.admin.get("/ads/workers", headers=PT))
        for word in ("Editar", "Desativar", "Excluir"):
            assert f">{word}<" in drawn, word


async def test_who_has_a_mission_what_it_waits_for_and_why_are_on_its_page(
    database_url, tmp_path
):
    """Its worker and writer by name, each a way to their pages; a person's turn; the code in words."""
    writer = FakeWriter(failed=1500)
    async with site_of(
        database_url, tmp_path, workers=[FakeWorker()], writers=[writer], proxies=2
    ) as site:
        await site.house.start()
        for mission in await site.house.add(2):
            await site.house.queue(mission)
            await site.house.drain()
        await site.house.change("UPDATE ads_missions SET writer_id = 'WRT-000001'")
        [(storage,)] = await site.house.rows(
            "SELECT storage FROM ads_missions WHERE id = :id", id=mission
        )
        page = f"/ads/missions/{mission}"
        seen = text_of(await site.viewer.get(page, headers=PT))
        for word in (
            '<a href="/ads/workers#worker-WRK-000001" title="WRK-000001">W1</a>',
            '<a href="/ads/writers#writer-WRT-000001" title="WRT-000001">writer 1</a>',
            f'<a class="mark warn" href="/jobs/{storage}">espera por uma pessoa</a>',
            "<b>ERROR303</b> Erro de schema · 1500 de 1500 anúncios recusados",
            "Anúncios processados 750 · Anúncios ao todo 1.500",
            "Motivo não restavam missões",
        ):
            assert word in seen, word
        control = text_of(await site.viewer.get("/ads", headers=PT))
        assert 'href="/ads/workers#worker-WRK-000001" title="WRK-000001">W1</a>' in control

        await site.app.resume(storage)
        await site.house.change("UPDATE jobs SET note = 'W1: no answer'")
        waits = text_of(await site.viewer.get(page, headers=PT))
        assert "W1: no answer" in waits
        assert "espera por uma pessoa" not in waits


async def test_who_does_not_answer_is_marked_and_a_rest_that_is_over_is_not_told(
    database_url, tmp_path
):
    async with site_of(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as site:
        await site.house.queue(*await site.house.add())
        await site.house.start()
        said, rests = "sem resposta desde", "em pausa até"
        for path in ("/ads/workers", "/ads/writers"):
            assert said not in text_of(await site.viewer.get(path, headers=PT)), path

        await site.house.change("UPDATE ads_sessions SET silent_since = clock()")
        await site.app.write(
            lambda tx: store.writer_away(tx, "WRT-000001", "ERROR301: refused")
        )
        await site.house.change(
            "UPDATE ads_workers SET status = 'error', rests_until = clock_in(60)"
        )
        for path in ("/ads/workers", "/ads/writers"):
            assert said in text_of(await site.viewer.get(path, headers=PT)), path
        assert rests in text_of(await site.viewer.get("/ads/workers", headers=PT))
        await site.house.change("UPDATE ads_workers SET status = 'initializing'")
        assert rests not in text_of(await site.viewer.get("/ads/workers", headers=PT))


async def test_a_proxy_that_is_off_says_why(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=2) as site:
        first, second = site.house.proxies
        failing = "UPDATE pool_items SET state = 'off', reason = 'failed', failures = 3"
        await site.house.change(f"{failing} WHERE name = '{first}'")
        await site.app.write(
            lambda tx: store.deactivate(tx, store.Sort.PROXIES, [second], actor="Bia")
        )

        seen = text_of(await site.viewer.get("/ads/proxies", headers=PT))

        for word in ("falhas seguidas: 3", "desativado por Bia"):
            assert f'<span class="sub">{word}</span>' in seen, word


async def test_proxies_are_read_page_by_page(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=THINGS + 2) as site:
        first = text_of(await site.viewer.get("/ads/proxies", headers=EN))
        [following] = re.findall(r'href="([^"]+)" rel="next"', first)
        second = text_of(await site.viewer.get(following, headers=EN))
        rows = re.compile(r'<tr id="proxy-(PRX-\d+)"')
        assert rows.findall(first) + rows.findall(second) == site.house.proxies
        assert 'rel="next"' not in second


async def test_an_admin_adds_a_worker_a_proxy_and_a_writer(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        browser, csrf = await signed_in(site, "admin")
        place = {"name": "W9", "url": "http://127.0.0.1:1", "api_key": KEY}
        domain = {"storage_domain": "files.example.org"}
        told(await posted(browser, "/ads/workers", csrf, **place, **domain))
        told(await posted(browser, "/ads/writers", csrf, **place))
        proxy = {"host": "p.example.org", "port": "3128", "username": "u", "password": KEY}
        told(await posted(browser, "/ads/proxies", csrf, **proxy, name="", vendor=""))
        assert (await posted(browser, "/ads/proxies", csrf, **proxy)).status_code >= 400
        for path, name in (
            ("workers", "W9"),
            ("writers", "W9"),
            ("proxies", "p.example.org:3128"),
        ):
            drawn = text_of(await browser.get(f"/ads/{path}", headers=PT))
            assert name in drawn
            assert KEY not in drawn
        wrong = {**place, "url": "http://169.254.169.254/"}
        assert (await posted(browser, "/ads/workers", csrf, **wrong)).status_code == 422
        bad = await posted(browser, "/ads/proxies", csrf, host="x.example.org", port="many")
        assert bad.status_code == 422

        orders = "/ads/proxies/orders"
        told(await posted(browser, orders, csrf, id="PRX-000001", verb="off"))
        off = text_of(await browser.get("/ads/proxies", headers=PT))
        assert re.search(r">Ativar<", off)
        told(await posted(browser, orders, csrf, id="PRX-000001", verb="on"))
        on = text_of(await browser.get("/ads/proxies", headers=PT))
        assert re.search(r">Desativar<", on)
        none = {"id": "PRX-999999", "verb": "off"}
        assert (await posted(browser, orders, csrf, **none)).status_code == 404
        assert (await posted(browser, orders, csrf, verb="off")).status_code == 422

        shown = text_of(await browser.get("/ads/proxies/PRX-000001", headers=PT))
        assert 'value="p.example.org"' in shown
        assert KEY not in shown
        same = {"host": "p.example.org", "port": "", "name": "renamed", "username": "u"}
        told(await posted(browser, "/ads/proxies/PRX-000001", csrf, **same, vendor="acme"))
        [kept] = await site.house.rows("SELECT name, port, password FROM proxies")
        assert kept == ("renamed", None, "vault:ads_proxies/PRX-000001")
        tested = told(await posted(browser, "/ads/proxies/test", csrf))
        assert "1" in tested
        both: dict[str, Any] = {"id": ["WRK-000001"], "verb": "delete"}
        told(await posted(browser, "/ads/workers/orders", csrf, **both))
        assert "W9" not in text_of(await browser.get("/ads/workers", headers=PT))
        await browser.aclose()


async def test_a_proxy_that_is_only_renamed_keeps_its_user_name(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        browser, csrf = await signed_in(site, "admin")
        proxy = {"host": "p.example.org", "port": "3128", "username": "u", "password": KEY}
        told(await posted(browser, "/ads/proxies", csrf, **proxy))

        shown = text_of(await browser.get("/ads/proxies/PRX-000001", headers=PT))
        form = dict(re.findall(r'<input name="(\w+)"[^>]* value="([^"]*)"', shown))
        told(await posted(browser, "/ads/proxies/PRX-000001", csrf, **{**form, "name": "new"}))

        assert {"host", "port", "name", "username", "vendor"} == form.keys()
        assert [("new", "u")] == await site.house.rows("SELECT name, username FROM proxies")
        await browser.aclose()


ORDERS = {
    "/ads/start": ("admin", "operator"),
    "/ads/stop": ("admin", "operator"),
    "/ads/stop-now": ("admin", "operator"),
    "/ads/missions": ("admin", "operator"),
    "/ads/missions/orders": ("admin", "operator"),
    "/ads/workers": ("admin",),
    "/ads/proxies": ("admin",),
    "/ads/proxies/orders": ("admin",),
    "/ads/workers/orders": ("admin",),
    "/ads/writers/orders": ("admin",),
    "/ads/workers/test": ("admin", "operator"),
    "/ads/proxies/test": ("admin", "operator"),
    "/ads/writers/test": ("admin", "operator"),
    "/ads/workers/reset": ("admin", "operator"),
    "/ads/workers/relocate": ("admin", "operator"),
    "/ads/writers": ("admin",),
}


async def test_whoever_may_not_do_it_has_no_button_for_it_and_is_refused(
    database_url, tmp_path
):
    async with site_of(database_url, tmp_path) as site:
        for role in ("viewer", "operator", "admin"):
            await _may_do_only_its_own(site, role)


async def test_a_change_that_makes_no_sense_is_refused_and_changes_nothing(
    database_url, tmp_path
):
    async with site_of(database_url, tmp_path, workers=[FakeWorker()]) as site:
        [before] = await site.house.rows("SELECT id, url FROM ads_workers")
        browser, csrf = await signed_in(site, "admin")
        told = {"name": "x" * 10_000, "url": "http://127.0.0.1:1"}
        refused = await posted(browser, f"/ads/workers/{before[0]}", csrf, **told)
        await browser.aclose()
        assert 422 == refused.status_code, refused.text
        assert [before] == await site.house.rows("SELECT id, url FROM ads_workers")


async def _may_do_only_its_own(site: Site[World], role: str) -> None:
    browser, csrf = await signed_in(site, role)
    for path, allowed in ORDERS.items():
        status = (await posted(browser, path, csrf)).status_code
        assert (status != 403) == (role in allowed), (role, path, status)
        forged = await posted(browser, path, "x" * len(csrf))
        assert forged.status_code == 403, path
    pages = {path: (await browser.get(path, headers=PT)).text for path in LISTS}
    assert ("do-stop" in pages["/ads"]) == (role != "viewer")
    assert ("ask-mission" in pages["/ads/missions"]) == (role != "viewer")
    for path in ("/ads/workers", "/ads/proxies", "/ads/writers"):
        assert ('<dialog id="ask-' in pages[path]) == (role == "admin"), path
    await browser.aclose()


async def test_a_mission_that_waits_for_a_person_says_why_and_goes_on_from_its_page(
    database_url, tmp_path
):
    worker = FakeWorker()
    worker.refuse = first(1, "POST", "/scrape", 401, {"detail": "no such key"})
    async with site_of(
        database_url, tmp_path, workers=[worker], writers=[FakeWriter()]
    ) as site:
        [mission] = await under_way(site.house)
        await site.house.drain()
        page = f"/ads/missions/{mission}"
        seen = text_of(await site.viewer.get(page, headers=PT))
        assert "<b>HTTP401</b> O serviço não aceita nossa chave de API" in seen
        assert "HTTP 401" in seen
        assert 'form="do-resume"' not in seen, "who only looks has no buttons"
        browser, csrf = await signed_in(site, "operator")
        assert 'form="do-resume">Continuar<' in text_of(await browser.get(page, headers=PT))

        order = {"verb": "resume", "mission": mission}
        told(await posted(browser, "/ads/missions/orders", csrf, **order))
        refused = await posted(browser, "/ads/missions/orders", csrf, **order)
        assert refused.status_code == 409

        await site.house.drain()
        assert (await site.house.mission(mission))["status"] == "completed"
        assert 'form="do-resume"' not in text_of(await browser.get(page, headers=PT))
