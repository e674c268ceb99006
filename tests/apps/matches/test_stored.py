"""What a person does to what is stored and what was found: corrected, deleted, refreshed, dropped, hurried."""

import json
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from retoma.apps.matches import store
from retoma.apps.matches.sandbox import Match, Odd
from retoma.apps.matches.sandbox.season import LAST_STEP
from retoma.apps.matches.schemas import MatchPage, from_json
from retoma.db.rows import read_time
from retoma.engine.ports import Clock
from tests.apps import verbs
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, House, house, stored_as
from tests.apps.matches.test_api import ROUND, asked
from tests.apps.matches.test_identity import failed_again, gate
from tests.apps.matches.test_pages import form_of, site_of
from tests.apps.matches.test_rounds import page_of
from tests.apps.matches.test_story import all_are
from tests.apps.verbs import verb
from tests.engine.aids import eventually, running
from tests.web.test_more_pages import posted
from tests.web.test_sign_in import signed_in

__all__ = ["verb"]  # the command line's own fixture, for this module too

typed, said = partial(verbs.typed, "matches"), partial(verbs.said, "matches")
AUDIT = """SELECT actor, details ->> 'why' FROM audit WHERE verb = :verb ORDER BY id"""


async def wrongly_stored(there: House) -> tuple[int, Match, dict[str, Any]]:
    """A round whose first match was stored with a stadium that is not its own: its scrape, the truth, the row."""
    run = await there.scraped()
    first = there.truth()[0]
    row = (await there.matches())[first.key]
    database = await there.app.database()
    page = await database.read(lambda tx: store.games.page_of(tx, row["id"]))
    told = {**page, "stadium": "Outro Estádio"}
    await there.app.write(
        lambda tx: store.repairs.correct(
            tx, row["id"], 1, from_json(MatchPage, json.dumps(told)), "set-up", actor=WHO
        )
    )
    return run, first, (await there.matches())[first.key]


async def test_a_stored_match_is_corrected_whole_by_the_same_rules(database_url):
    """R1 R4: who, why and what it was is in the audit; of two at once one is told to look again."""
    async with house(database_url) as there, asked(there, database_url) as by:
        olga, vera = by["operator"], by["viewer"]
        run, truth, row = await wrongly_stored(there)
        place = f"/api/matches/{row['id']}/correct"
        right = {"match": truth.plain(), "why": "súmula oficial", "revision": 2}

        assert 403 == (await vera.post(place, json=right)).status_code
        for bad, status in (
            ({**right, "match": truth.plain() | {"score": {"home": 9, "away": 9}}}, 422),
            ({**right, "match": there.truth()[1].plain()}, 409),
            ({**right, "match": truth.plain() | {"round": 2}}, 409),
            ({**right, "revision": 1}, 409),
            ({**right, "why": ""}, 422),
        ):
            assert status == (await olga.post(place, json=bad)).status_code, bad
        done = await olga.post(place, json=right)
        assert (200, ["stadium"], 3) == (
            done.status_code,
            done.json()["changed"],
            done.json()["match"]["revision"],
        ), done.text
        same = await olga.post(place, json={**right, "revision": 3})
        assert [] == same.json()["changed"]
        stored_as(truth, (await there.matches())[truth.key])
        assert ("Olga", "súmula oficial") == (
            await there.rows(AUDIT, verb="matches.corrected")
        )[-1]
        assert ("DONE", True, 10, 10) == await gate(there, run)
        assert [] == await there.rows(PARTIAL)


async def test_a_deleted_match_is_missing_until_it_is_scraped_again(database_url):
    """R3: its round is not complete meanwhile, and whoever waits is told again when it is."""
    async with house(database_url) as there, asked(there, database_url) as by:
        olga = by["operator"]
        run, truth, row = await wrongly_stored(there)
        place = f"/api/matches/{row['id']}/delete"

        stale = await olga.post(place, json={"why": "x", "revision": 1})
        assert 409 == stale.status_code
        done = await olga.post(place, json={"why": "estádio errado", "revision": 2})
        assert (200, [run]) == (done.status_code, done.json()["jobs"]), done.text
        assert ("FAILED", False, 9, 10) == await gate(there, run)
        task = (await there.tasks(run))[truth.key]
        assert ("FAILED", "DELETED", "estádio errado") == (
            task["status"],
            task["error_code"],
            task["error"]["message"],
        )
        for table in ("partida_eventos", "partida_estatisticas"):
            left = await there.rows(
                f"SELECT 1 FROM {table} WHERE partida = :match",  # noqa: S608 — two names of ours
                match=row["id"],
            )
            assert [] == left
        [told] = await there.rows("SELECT details FROM audit WHERE verb = 'matches.deleted'")
        assert "Outro Estádio" in str(told)
        assert [truth.key] == (await olga.get(f"/api/rounds/{LEAGUE}/2026/1")).json()["missing"]

        assert 1 == await failed_again(there, run)
        assert ("DONE", True, 10, 10) == await gate(there, run)
        stored_as(truth, (await there.matches())[truth.key])
        assert [(2,)] == await there.rows(
            "SELECT count(*) FROM jobs WHERE kind = 'matches.complete'"
        )


async def test_a_match_that_a_person_had_accepted_can_be_deleted_and_scraped_too(database_url):
    """Its job was ended as skipped: it has failed all the same, and is tried again with the others."""
    async with house(database_url) as there:
        odd = there.truth()[0]
        there.site.world.make_odd(LEAGUE, odd.key, Odd.SCORE_100)
        run = await there.scraped()
        task = (await there.tasks(run))[odd.key]["id"]
        accepted = await there.app.write(
            lambda tx: store.repairs.accept(tx, task, page_of(odd), "súmula", actor=WHO)
        )
        assert ("DONE", True, 10, 10) == await gate(there, run)
        await there.app.write(
            lambda tx: store.repairs.delete(tx, accepted.partida, 1, "engano", actor=WHO)
        )
        told = await there.seen(run)
        assert ("FAILED", 1, 0) == tuple(
            told[name] for name in ("status", "failed", "left_out")
        )
        assert "DELETED" == (await there.tasks(run))[odd.key]["error_code"]

        there.site.world.make_odd(LEAGUE, odd.key, None)
        assert 1 == await failed_again(there, run)
        assert ("DONE", True, 10, 10) == await gate(there, run)


async def test_a_match_is_asked_for_again_and_stays_until_its_page_was_read(database_url):
    async with house(database_url) as there, asked(there, database_url) as by:
        olga = by["operator"]
        run, truth, row = await wrongly_stored(there)
        place = f"/api/matches/{row['id']}/refresh"
        there.site.world.make_odd(LEAGUE, truth.key, Odd.OTHER_ROUND)
        asked_for = await olga.post(place, json={"why": "estádio errado"})
        assert 202 == asked_for.status_code, asked_for.text
        await there.drained()
        job = await there.app.get(asked_for.json()["job"])
        assert ("dead", "SCHEMA_INVALID") == (str(job.state), job.code)
        assert await there.app.evidence.list(job.id)
        assert "Outro Estádio" == (await there.matches())[truth.key]["stadium"]
        assert ("DONE", True, 10, 10) == await gate(there, run)

        there.site.world.make_odd(LEAGUE, truth.key, None)
        results = []
        for _ in range(2):
            again = (await olga.post(place, json={"why": "agora sim"})).json()["job"]
            await there.drained()
            results.append(await there.app.result(again))
        assert [["stadium"], []] == [each["changed"] for each in results]
        stored_as(truth, (await there.matches())[truth.key])
        assert [("Olga", "agora sim")] * 2 == await there.rows(AUDIT, verb="matches.refreshed")


async def test_a_match_that_never_was_is_dropped_and_a_round_is_as_large_as_a_person_says(
    database_url,
):
    """R3: neither is expected any longer, in this scrape nor in the next; both can be taken back."""
    async with house(database_url) as there, asked(there, database_url) as by:
        olga = by["operator"]
        missing, phantom, *_ = there.truth()
        there.site.world.make_odd(LEAGUE, missing.key, Odd.UNLISTED)
        there.ill(phantom.path, 403)
        run = await there.scraped()
        assert ("FAILED", False, 8, 10) == await gate(there, run)
        task = (await there.tasks(run))[phantom.key]["id"]
        drop = f"/api/scrape/tasks/{task}/drop"
        size = f"/api/rounds/{LEAGUE}/2026/1/size"

        assert 422 == (await olga.post(drop, json={})).status_code
        done = await olga.post(drop, json={"why": "cancelada pela CBF"})
        assert ("SKIPPED", "cancelada pela CBF") == tuple(
            done.json()[name] for name in ("status", "dropped")
        ), done.text
        assert ("FAILED", False, 8, 10) == await gate(there, run)
        told = (await olga.post(size, json={"matches": 8, "why": "duas a menos"})).json()
        assert (True, 8, 0) == tuple(
            told[name] for name in ("complete", "expected", "unlisted")
        )
        assert ("DONE", True, 8, 8) == await gate(there, run)
        await there.drained()
        assert [(1,)] == await there.rows(
            "SELECT count(*) FROM jobs WHERE kind = 'matches.complete' AND state = 'done'"
        )
        later = await there.scraped()
        assert ("DONE", True, 8, 8) == await gate(there, later)

        there.site.box._faults.clear()
        there.site.world.make_odd(LEAGUE, missing.key, None)
        assert 200 == (await olga.post(drop.replace("drop", "restore"))).status_code
        assert 409 == (await olga.post(drop.replace("drop", "restore"))).status_code
        await there.drained()
        assert ("DONE", True, 10, 10) == await gate(there, later)
        stored = (await there.tasks(later))[phantom.key]["id"]
        refused = await olga.post(f"/api/scrape/tasks/{stored}/drop", json={"why": "x"})
        assert (409, True) == (refused.status_code, "delete it first" in refused.text)


async def test_what_waits_for_a_time_is_looked_at_now(database_url):
    """NOT_YET and a next attempt, of one task or of all in a scrape; what is over cannot be hurried."""
    async with (
        house(database_url, unfinished=1.0, clock=Clock()) as there,
        asked(there, database_url) as by,
    ):
        olga = by["operator"]
        run, _ = await there.start()
        async with running(there.app):
            await eventually(lambda: all_are(there, run, "NOT_YET"))
        there.site.world.step = LAST_STEP
        first = next(iter((await there.tasks(run)).values()))

        one = await olga.post(f"/api/scrape/tasks/{first['id']}/hurry")
        assert (200, "NOT_YET") == (one.status_code, one.json()["status"]), one.text
        before = read_time(first["look_again_at"])
        assert before is not None
        assert datetime.fromisoformat(one.json()["look_again_at"]) < before
        every = (await olga.post(f"/api/scrape/jobs/{run}/hurry")).json()["jobs"]
        assert {each["job"] for each in (await there.tasks(run)).values()} == set(every)
        async with running(there.app):
            await eventually(lambda: all_are(there, run, "DONE"))
        assert ("DONE", True, 10, 10) == await gate(there, run)
        over = await olga.post(f"/api/scrape/tasks/{first['id']}/hurry")
        assert 409 == over.status_code


async def test_the_id_of_a_request_goes_with_all_its_jobs(database_url):
    """Discovery, matches and the notice, so that one word finds them all."""
    async with house(database_url) as there, asked(there, database_url) as by:
        headers = {"X-Correlation-Id": "pedido-42"}
        await by["operator"].post("/api/scrape", json=ROUND, headers=headers)
        await there.drained()

        assert [("matches.complete", 1), ("matches.discovery", 1), ("matches.match", 10)] == (
            await there.rows(
                "SELECT kind, count(*) FROM jobs WHERE correlation = 'pedido-42'"
                " GROUP BY kind ORDER BY kind"
            )
        )


async def test_a_redirect_on_the_same_site_is_followed_and_no_other(database_url):
    """301: the page is held against the match it was asked for all the same."""
    async with house(database_url) as there:
        moved, away, *_ = there.truth()
        there.site.world.make_odd(LEAGUE, moved.key, Odd.MOVED)
        there.site.world.make_odd(LEAGUE, away.key, Odd.MOVED_AWAY)
        run = await there.scraped()

        tasks = await there.tasks(run)
        assert ("DONE", "FAILED") == (tasks[moved.key]["status"], tasks[away.key]["status"])
        elsewhere = moved.path.replace("jogo", "partida")
        assert (1, 1) == (there.asked()[moved.path], there.asked()[elsewhere])
        assert "ssrf_blocked" == tasks[away.key]["error_code"]


async def test_the_same_on_the_pages(database_url):
    """In Portuguese, with a reason each; no key of a dict and no English word of a state is shown."""
    async with site_of(database_url) as site:
        run, truth, row = await wrongly_stored(site.house)
        browser, csrf = await signed_in(site, "operator")
        place = f"/matches/partidas/{row['id']}"
        shown = await site.seen(place)
        for word in ("Reparar esta partida", "Buscar de novo no site", "Excluir a partida"):
            assert word in shown
        assert "Reparar" not in await site.seen(place, site.viewer)
        form = await site.seen(f"{place}/corrigir")
        assert "Outro Estádio" in form

        wrong = {**form_of(truth), "revision": "2", "stadium": ""}
        refused = await posted(browser, f"{place}/corrigir", csrf, **wrong)
        assert 422 == refused.status_code
        right = {**form_of(truth), "revision": "2"}
        assert 204 == (await posted(browser, f"{place}/corrigir", csrf, **right)).status_code
        stored_as(truth, (await site.house.matches())[truth.key])
        again = await posted(browser, f"{place}/atualizar", csrf, why="conferir")
        assert again.headers["hx-redirect"].startswith("/jobs/")
        gone = await posted(browser, f"{place}/excluir", csrf, why="errada", revision="3")
        assert f"/matches/rodada/{run}" == gone.headers["hx-redirect"]
        assert ("FAILED", False, 9, 10) == await gate(site.house, run)
        task = (await site.house.tasks(run))[truth.key]["id"]
        at = f"/matches/tarefa/{task}"
        assert "uma pessoa excluiu o que estava gravado" in await site.seen(at)
        assert (
            204 == (await posted(browser, f"{at}/descartar", csrf, why="não houve")).status_code
        )
        assert "Uma pessoa disse que esta partida nunca existiu: não houve." in (
            await site.seen(at)
        )
        round_page = await site.seen(f"/matches/rodada/{run}")
        assert "Não listadas por nenhuma página: 1." in round_page
        size = {"matches": "9", "why": "uma a menos"}
        assert (
            204
            == (
                await posted(browser, f"/matches/rodada/{run}/tamanho", csrf, **size)
            ).status_code
        )
        assert ("DONE", True, 9, 9) == await gate(site.house, run)
        assert 204 == (await posted(browser, f"{at}/restaurar", csrf)).status_code
        await browser.aclose()


async def test_the_same_from_a_shell(sqlite_url, verb, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("RETOMA_DATABASE_URL", sqlite_url)
    async with house(sqlite_url) as there:
        run, truth, row = await wrongly_stored(there)
        match = str(row["id"])
        file = tmp_path / "match.json"
        await typed(verb, "status")  # what was logged before is out
        page = json.loads((await typed(verb, "show", match)).out)
        assert "Outro Estádio" == page["stadium"]
        file.write_text(json.dumps({**page, "score": {"home": 90, "away": 0}}))
        refused = await typed(verb, "correct", match, str(file), "--why", "x")
        assert (True, True) == (0 != refused.code, "score.home" in refused.err), refused
        file.write_text(json.dumps({**page, "status": "live"}))
        live = await typed(verb, "correct", match, str(file), "--why", "x")
        assert (2, True) == (live.code, "only a match that is over is stored" in live.err), live
        file.write_text(json.dumps({**page, "stadium": truth.stadium}))
        done = await typed(verb, "correct", match, str(file), "--why", "oficial")
        assert "was corrected: stadium" in done.out, done
        stored_as(truth, (await there.matches())[truth.key])
        assert "is asked for again" in (await typed(verb, "refresh", match, "--why", "x")).out
        assert "stored no longer" in (await typed(verb, "delete", match, "--why", "x")).out
        task = str((await there.tasks(run))[truth.key]["id"])
        assert "expected no longer" in (await typed(verb, "drop", task, "--why", "x")).out
        size = (LEAGUE, "2026", "1", "--matches", "9", "--why", "x")
        assert ", round 1, matches: 9" in (await typed(verb, "confirm", *size)).out
        assert ("DONE", True, 9, 9) == await gate(there, run)
        assert "looked for again" in (await typed(verb, "restore", task)).out
        stored = str((await there.tasks(run))[there.truth()[1].key]["id"])
        assert 0 != (await typed(verb, "hurry", stored)).code
        assert 2 == len((await said(verb, "hurry", "--scrape", str(run)))["jobs"])
