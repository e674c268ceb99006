"""Matches in Mission Control: seasons, a round, a task with its evidence, repairs, and what is stored."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from retoma.apps.matches import APP, service, store
from retoma.apps.matches.model import CODES, MATCH, TaskStatus
from retoma.apps.matches.pages.home import HomeScreen
from retoma.apps.matches.pages.presenters import CONCERN, MEANINGS
from retoma.apps.matches.pages.rounds import RoundScreen, cell_given
from retoma.apps.matches.pages.snapshots import SANDBOX
from retoma.apps.matches.sandbox import Layout, Match, Odd
from retoma.engine.query.tail import Slice
from retoma.engine.rules.errors import ENGINE_CODES
from retoma.web.pages.live import changes
from retoma.words import Language, tell
from tests.apps.matches.aids import LEAGUE, House, house, stored_as
from tests.apps.matches.test_rounds import refs
from tests.apps.people import EN, PT, Site, pages
from tests.web.aids import client
from tests.web.test_more_pages import posted, told
from tests.web.test_pages import told_of
from tests.web.test_sign_in import signed_in

HOME, STORED, REPLAY = "/matches", "/matches/partidas", "/matches/reler"
HOSTILE = ("<script>alert('gol')</script>", "<img src=x onerror=alert(1)>")
STEERS = r'="do-|id="start"|/editar|href="/matches/reler|<iframe'


@asynccontextmanager
async def site_of(url: str, **how: Any) -> AsyncIterator[Site[House]]:
    async with house(url, **how) as there:
        where = there.settings.matches_url
        async with pages(there, APP, url, matches_url=where) as site:
            yield site


async def broken_round(site: Site[House]) -> tuple[list[Match], dict[str, int]]:
    """A round of which two matches were refused: their truth, and all tasks by their keys."""
    high, lost, *_ = there = site.house.truth()
    site.house.site.world.make_odd(LEAGUE, high.key, Odd.SCORE_100)
    site.house.site.world.make_odd(LEAGUE, lost.key, Odd.NO_SCORE)
    run = await site.house.scraped()
    return list(there), {key: each["id"] for key, each in (await site.house.tasks(run)).items()}


def task_at(task: int) -> str:
    return f"{HOME}/tarefa/{task}"


# — what is seen —


def test_every_code_of_a_task_has_a_meaning_in_both_languages():
    """Those of the document are told in its words."""
    told = {code: tell(said, Language.PT_BR) for code, said in MEANINGS.items()}

    assert {code: each.meaning for code, each in CODES.items()} == {
        code: told[code] for code in CODES
    }
    assert set() == MEANINGS.keys() - CODES.keys() - ENGINE_CODES.keys()
    assert [] == [code for code in told if told[code] == str(MEANINGS[code])]


async def test_every_page_is_drawn_for_every_role_in_both_languages(database_url):
    """With nothing to show it says what to do; hostile names are text. A viewer has no buttons and no pages."""
    async with site_of(database_url) as site:
        assert "Nenhuma rodada foi coletada ainda. Comece" in await site.seen(HOME)
        assert "Ainda não há partida gravada" in await site.seen(STORED, site.viewer)
        assert "Nenhuma página recusada está assim" in await site.seen(REPLAY)
        (high, lost, well, *_), tasks = await broken_round(site)
        await site.house.start(2)
        open_to_all = [HOME, f"{HOME}?liga={LEAGUE}&temporada=2026&situacao=falhas", STORED]
        open_to_all += [f"{STORED}/1", f"{HOME}/rodada/1", f"{HOME}/rodada/2"]
        open_to_all += [task_at(tasks[each.key]) for each in (high, lost, well)]
        closed = [REPLAY, f"{REPLAY}?rodada=1", f"{task_at(tasks[high.key])}/editar"]
        closed.append(f"{task_at(tasks[lost.key])}/editar")
        for who, headers in ((site.operator, EN), (site.viewer, PT)):
            for path in (*open_to_all, *closed):
                answer = await who.get(path, headers=headers)
                if who is site.viewer and path in closed:
                    assert answer.status_code == 403, path
                    continue
                assert answer.status_code == 200, (path, answer.text)
                _is_harmless(answer.text, path)
                assert who is not site.viewer or not re.search(STEERS, answer.text), path
        games = [await site.seen(f"{STORED}/{n}", site.viewer) for n in range(1, 9)]
        _is_harmless((await site.admin.get(REPLAY, headers=PT)).text, REPLAY)
        assert all(any(name in each for each in games) for name in HOSTILE)
        await _menu_and_doors(site)


def _is_harmless(text: str, path: str) -> None:
    """No program but ours, no picture, nothing that a policy would have to stop."""
    page = LexborHTMLParser(text)
    assert [] == [each.html for each in page.css("script:not([src]), img, object, embed")], path
    names = {name for each in page.css("*") for name in each.attributes}
    assert set() == {each for each in names if each == "style" or each.startswith("on")}, path


async def _menu_and_doors(site: Site[House]) -> None:
    for path, word in {HOME: "Rodadas", STORED: "Partidas gravadas"}.items():
        page = await site.seen(path, site.viewer)
        current = re.findall(r'<a href="([^"]*)" aria-current="page">([^<]*)<', page)
        assert [(path, word)] == current
    wrong = {
        f"{HOME}/rodada/999": 404,
        f"{HOME}/rodada/x": 422,
        task_at(999): 404,
        f"{STORED}/999": 404,
        f"{HOME}?temporada=muitas": 422,
        f"{HOME}?situacao=nonsense": 422,
        f"{STORED}?cursor=forged": 422,
        f"{REPLAY}?leitores=cubista": 422,
        f"{task_at(999)}/pagina": 404,
        f"{task_at(999)}/editar": 404,
        f"{HOME}/rodada/2/pagina": 404,
    }
    for path, status in wrong.items():
        answer = await site.operator.get(path, headers=PT)
        assert status == answer.status_code, path
        assert "text/html" in answer.headers["content-type"]
    nobody = client(site.site)
    for path in (HOME, STORED, f"{HOME}/rodada/1", task_at(1)):
        assert 401 == (await nobody.get(f"/live{path}")).status_code
        assert 303 == (await nobody.get(path, headers=PT)).status_code
    await nobody.aclose()


async def test_a_refused_page_is_seen_by_operators_in_a_frame_where_nothing_runs(database_url):
    """H-44: sandboxed, of no origin, never by a viewer; beside it what failed, in words."""
    async with site_of(database_url) as site:
        (high, lost, well, *_), tasks = await broken_round(site)
        page = await site.seen(task_at(tasks[high.key]))
        assert "score.home" in page
        assert "deve ser no máximo 30" in page
        assert "dados inválidos na página" in page
        english = await site.operator.get(task_at(tasks[high.key]), headers=EN)
        assert "the page holds invalid data" in english.text
        assert 'sandbox=""' in page
        assert f'href="/api/scrape/tasks/{tasks[high.key]}/snapshot"' in page
        [frame] = re.findall(r'<iframe [^>]*src="([^"]*)"', page)
        shown = await site.operator.get(frame)
        assert (SANDBOX, "no-store") == tuple(
            shown.headers[name] for name in ("content-security-policy", "cache-control")
        )
        assert SANDBOX.startswith("sandbox; default-src 'none'")
        assert "allow-" not in SANDBOX
        assert "100" in shown.text
        assert 403 == (await site.viewer.get(frame)).status_code
        page = await site.seen(task_at(tasks[lost.key]), site.viewer)
        assert "Um operador pode olhar a página recusada" in page
        assert ".confronto .placar" in page
        none = await site.operator.get(f"{task_at(tasks[well.key])}/pagina")
        assert 404 == none.status_code


async def test_cells_tell_what_a_match_waits_for_and_only_what_moved_is_sent(database_url):
    assert CONCERN.met(Slice([replace(told_of(job=1), kind=MATCH)], [], None))
    assert not CONCERN.met(Slice([replace(told_of(job=1), kind="quotes.quote")], [], None))
    async with site_of(database_url) as site:
        run, _ = await site.house.start()
        app, found = site.house.app, refs(site.house)
        await app.write(lambda tx: store.runs.discovered(tx, run, found))
        task = (await site.house.tasks(run))[found[3].key]["id"]
        round_, home = (
            RoundScreen(site.site.state.pages, site.view(), run),
            HomeScreen(site.site.state.pages, site.view()),
        )
        before, grid = await round_.draw(), await home.draw()
        assert 10 == "".join(each.html for each in before).count('class="match waiting"')

        await app.write(lambda tx: store.tasks.note(tx, task, "postponed", None, None))
        sent = {each.id: unescape(each.html) for each in changes(before, await round_.draw())}
        assert {"round-head", f"task-{task}"} == set(sent)
        assert "NOT_YET" in sent[f"task-{task}"]
        assert "foi adiada" in sent[f"task-{task}"]
        again = datetime(2026, 4, 5, 12, tzinfo=UTC)
        told_ = await service.scrapes.get_task(app, task)
        given = cell_given(site.view(), replace(told_, look_again_at=again), None)
        cell = site.site.state.pages.render("matches/match_cell.html", site.view(), **given)
        assert "foi adiada · olhada de novo em 05/04 09:00" in cell
        refused = replace(told_, status=TaskStatus.FAILED, error_code="too_large", attempts=1)
        given = cell_given(site.view(), refused, None)
        cell = site.site.state.pages.render("matches/match_cell.html", site.view(), **given)
        assert "tentativas: 1" in cell
        assert "a página é maior do que o permitido" in cell
        assert "Partidas que faltam: 10 de 10" in sent["round-head"]
        moved = {each.id for each in changes(grid, await home.draw())}
        assert {f"round-{LEAGUE}-2026-1"} == moved
        assert "Ainda não: foi adiada." in await site.seen(task_at(task), site.viewer)


# — what is done —


async def test_rounds_are_begun_by_whoever_may(database_url):
    """Show 5: by a form with its token; what makes no sense is refused, and nothing begins."""
    async with site_of(database_url) as site:
        browser, csrf = await signed_in(site, "operator")
        whole = {"league": LEAGUE, "season": "2026", "round": "1"}
        for wrong, status in (
            ({"round": "0"}, 422),
            ({"round": "39"}, 422),
            ({"round": "1; DROP TABLE partidas"}, 422),
            ({"round": "9" * 30}, 422),
            ({"round": ""}, 422),
            ({"season": "12"}, 422),
            ({"to_round": "39"}, 422),
            ({"round": "5", "to_round": "4"}, 422),
            ({"league": "várzea"}, 404),
            ({"wanted": f"{LEAGUE} 2026"}, 200),  # the rest is in the form
            ({"wanted": f"{LEAGUE} 2026 0"}, 422),
        ):
            answer = await posted(browser, HOME, csrf, **{**whole, "stay": "1", **wrong})
            assert status == answer.status_code, (wrong, answer.text)
        assert [(1,)] == await site.house.rows("SELECT count(*) FROM match_runs")
        assert 403 == (await posted(browser, HOME, "forged", **whole)).status_code
        led = await posted(browser, HOME, csrf, **whole | {"round": "2"})
        assert (204, f"{HOME}/rodada/2") == (led.status_code, led.headers["hx-redirect"])
        cell = await posted(browser, HOME, csrf, wanted=f"{LEAGUE} 2026 3", stay="1")
        assert "rounds started: 1 of 1" in told(cell)
        many = await posted(browser, HOME, csrf, **whole | {"to_round": "6"})
        assert "rounds started: 3 of 6" in told(many)
        viewer, theirs = await signed_in(site, "viewer")
        for path in (HOME, f"{HOME}/rodada/1/falhas", REPLAY, f"{task_at(1)}/editar"):
            assert 403 == (await posted(viewer, path, theirs, **whole)).status_code, path
        await browser.aclose()
        await viewer.aclose()


async def test_what_failed_or_is_missing_is_tried_again_by_a_click(database_url):
    """H-46: asked twice it is once; a task that is stored is not tried again."""
    async with site_of(database_url) as site:
        (high, lost, well, *_), tasks = await broken_round(site)
        browser, csrf = await signed_in(site, "operator")
        at = f"{HOME}/rodada/1"
        site.house.site.world.make_odd(LEAGUE, high.key, None)
        one = f"{task_at(tasks[high.key])}/tentar"
        assert "is tried again" in told(await posted(browser, one, csrf))
        assert 409 == (await posted(browser, one, csrf)).status_code
        await site.house.drained()
        assert 409 == (await posted(browser, one, csrf)).status_code
        stored = f"{task_at(tasks[well.key])}/tentar"
        assert 409 == (await posted(browser, stored, csrf)).status_code
        assert "matches tried again: 1" in told(await posted(browser, f"{at}/falhas", csrf))
        assert "matches tried again: 0" in told(await posted(browser, f"{at}/falhas", csrf))
        await site.house.drained()
        assert "Partidas que faltam: 1 de 10" in await site.seen(at)
        site.house.site.world.make_odd(LEAGUE, lost.key, None)
        assert "missing matches tried again: 1 of 1" in told(
            await posted(browser, f"{at}/faltas", csrf)
        )
        await site.house.drained()
        page = await site.seen(at, site.viewer)
        assert "Completa: pode ser publicada." in page
        assert "10/10" in await site.seen(HOME, site.viewer)
        (
            later,
            _,
        ) = await site.house.start()  # of an earlier one nobody may think that it is the gate
        page = await site.seen(at, site.viewer)
        assert (True, False) == (
            f"{HOME}/rodada/{later}" in page,
            "pode ser publicada." in page,
        )
        assert f'href="{HOME}/rodada/{later}"' in await site.seen(f"{STORED}/1", site.viewer)
        for path in (f"{at}/nonsense", f"{HOME}/rodada/999/faltas"):
            assert 404 == (await posted(browser, path, csrf)).status_code, path
        await browser.aclose()


async def test_refused_pages_are_read_again_shown_first_and_then_stored(database_url):
    """R4: of one round alone; nothing is asked of the site."""
    async with site_of(database_url) as site:
        site.house.site.world.draw(Layout.MODERN)
        run = await site.house.scraped()
        alerts = await site.seen(HOME, site.viewer)
        assert "LayoutChanged" in alerts
        assert "table.jogos" in alerts
        browser, csrf = await signed_in(site, "operator")
        asked = site.house.asked()
        how = {"rodada": str(run), "leitores": "modern,classic"}
        query = f"{REPLAY}?rodada={run}"
        assert "Páginas que podem ser lidas: 0 de 1" in await site.seen(query)
        assert "partidas: 10" in await site.seen(f"{query}&leitores=modern,classic")
        assert 422 == (await posted(browser, REPLAY, csrf, rodada=str(run))).status_code
        assert 422 == (await posted(browser, REPLAY, csrf, rodada="<b>")).status_code
        assert 403 == (await posted(browser, REPLAY, "forged", **how)).status_code
        done = await posted(browser, REPLAY, csrf, **how)
        assert (204, f"{HOME}/rodada/{run}") == (done.status_code, done.headers["hx-redirect"])
        assert asked == site.house.asked()
        await site.house.drained()
        assert "10 com falha" in await site.seen(HOME)
        asked = site.house.asked()
        await posted(browser, REPLAY, csrf, **how)
        assert (await site.house.seen(run))["complete"]
        assert asked == site.house.asked()
        assert "LayoutChanged" not in await site.seen(HOME)
        await browser.aclose()


def form_of(match: Match) -> dict[str, Any]:
    """What somebody types who knows the truth."""
    plain = match.plain()
    events = plain["events"]
    told: dict[str, Any] = {
        "kickoff": plain["kickoff"],
        "stadium": plain["stadium"],
        "why": "súmula",
        **{
            f"event-{name}": [str(each[name] or "") for each in events] + [""]
            for name in ("minute", "added", "side", "kind", "player", "other")
        },
    }
    for side in ("home", "away"):
        told[f"score-{side}"] = str(plain["score"][side])
        for name, sides in plain["statistics"].items():
            told[f"{name}-{side}"] = str(sides[side])
        for part, squad in plain["lineups"][side].items():
            told[f"{side}-{part}"] = "\r\n".join(
                p if isinstance(p, str) else f"{p['number']} {p['name']}" for p in squad
            )
    return told


async def test_a_match_is_put_right_on_its_page(database_url):
    """R1 R4: what the page says is filled in; each flaw is told; then it is stored whole, by whom and why."""
    async with site_of(database_url) as site:
        (high, *_), tasks = await broken_round(site)
        browser, csrf = await signed_in(site, "operator")
        edit = f"{task_at(tasks[high.key])}/editar"
        shown = await site.seen(edit)
        assert (
            'name="score-home" inputmode="numeric" maxlength="4" required value="100"' in shown
        )
        name = high.plain()["lineups"]["home"]["starters"][0]["name"]
        assert f"1 {name}" in shown
        right = form_of(high)
        for wrong, path in (
            ({"score-home": "100", "score-away": "0"}, "score.home"),
            ({"score-home": "29"}, "score"),
            ({"event-player": ["Ninguém"] * len(right["event-player"])}, "events["),
            ({"home-starters": "sem número"}, "lineups.home.starters[0].number"),
            ({"possession-home": "<b>"}, "statistics.possession.home"),
            ({"kickoff": "ontem"}, "kickoff"),
            ({"why": ""}, "why"),
        ):
            answer = await posted(browser, edit, csrf, **{**right, **wrong})
            assert 422 == answer.status_code, path
            assert f"<code>{path}" in answer.text or f".{path}<" in answer.text, answer.text
            _is_harmless(answer.text, path)
        assert 403 == (await posted(browser, edit, "forged", **right)).status_code
        assert 8 == len(await site.house.matches())

        mixed = {key: each[::-1] for key, each in right.items() if key.startswith("event-")}
        done = await posted(browser, edit, csrf, **{**right, **mixed})
        assert (204, task_at(tasks[high.key])) == (
            done.status_code,
            done.headers["hx-redirect"],
        ), done.text
        stored_as(high, (await site.house.matches())[high.key])
        assert 409 == (await posted(browser, edit, csrf, **right)).status_code
        assert "a correção é feita lá" in await site.seen(edit)
        page = await site.seen(task_at(tasks[high.key]), site.viewer)
        assert "súmula" in page
        assert "Bia" in page
        partida = (await site.house.tasks(1))[high.key]["partida_id"]
        assert "gravada por Bia" in await site.seen(f"{STORED}/{partida}", site.viewer)
        audit = await site.seen("/audit", site.admin)
        assert "matches.promoted" in audit
        await browser.aclose()


async def test_what_is_stored_is_found_and_taken_away(database_url):
    async with site_of(database_url) as site:
        await site.house.scraped()
        [first, *_] = site.house.truth()
        page = await site.seen(STORED, site.viewer)
        assert 10 == page.count('<tr id="match-')
        page = await site.seen(f"{STORED}?liga={LEAGUE}&rodada=1&time={first.home.key}")
        assert 1 == page.count('<tr id="match-')
        assert 0 == (await site.seen(f"{STORED}?rodada=2")).count('<tr id="match-')
        for kind in ("excel", "csv", "json"):
            link = f"/api/matches/export?league={LEAGUE}&round=1&team={first.home.key}&format={kind}"
            assert f'href="{link}"' in page
            assert (await site.viewer.get(link)).status_code == 200
        [partida] = re.findall(r'<tr id="match-(\d+)"', page)
        game = await site.seen(f"{STORED}/{partida}", site.viewer)
        plain = first.plain()
        assert len(plain["events"]) == game.count('<span class="minute">')
        assert all(each["player"] in game for each in plain["events"])
        assert str(plain["statistics"]["passes"]["home"]) in game.replace(".", "")


async def test_a_page_in_another_charset_is_shown_and_drafted_as_it_was_meant(database_url):
    """By the header that came with it: neither the frame nor the form says `GrÃªmio` or `?`."""
    async with site_of(database_url) as site:
        odd = site.house.truth()[0]
        site.house.site.world.make_odd(LEAGUE, odd.key, Odd.LATIN_1_REFUSED)
        run = await site.house.scraped()
        task = (await site.house.tasks(run))[odd.key]
        assert "FAILED" == task["status"]

        page = await site.seen(f"{task_at(task['id'])}/pagina")
        form = await site.seen(f"{task_at(task['id'])}/editar")
        assert "\ufffd" not in page + form
        assert odd.stadium in page
        assert odd.stadium in unescape(form)
