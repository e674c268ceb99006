"""The document's sequence diagram, from the API to the last branch, in one round: Show 1.

API -> Worker: Iniciar Rodada X                        POST /api/scrape
Worker -> DB: Criar ou Ler Job                         one run, however often it is asked for
Scraper --> Worker: Lista de 10 URLs                   ten tasks, before any match is asked for
alt Já existe: Skip                                    SKIPPED, and nobody asks the site
alt Sucesso: Transaction Start, Insert…, Commit        DONE, with events and statistics
alt Erro Transiente: Retry com Backoff (x3)            DONE after it passed, FAILED after three attempts
alt Erro Fatal: Log Error, revisão manual              FAILED at the first, with error and page
"""

from typing import Any

from retoma.apps.matches import APP, store
from retoma.apps.matches.sandbox import Layout, Odd
from retoma.db.rows import read_json
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, House, house, stored_as
from tests.apps.matches.test_rounds import page_of, refs
from tests.apps.people import people

ROUND: dict[str, Any] = {"league": LEAGUE, "season": 2026, "round": 1}
WAITS = """SELECT e.details FROM events e JOIN match_tasks t ON t.job = e.job
WHERE t.run = :run AND e.type = 'failed' AND t.match_key = :key ORDER BY e.seq"""


async def test_every_branch_of_the_documents_sequence(database_url):
    """R1 to R6, H-39 to H-47."""
    async with house(database_url) as there, people(there.app, APP, database_url) as by:
        stored_before, hiccup, recovers, outage, fatal, *well = there.truth()
        await put_before(there, stored_before.key)
        before = there.asked()
        there.ill(hiccup.path, 503, times=2)  # within one call
        there.ill(recovers.path, 500, times=4)  # one attempt, and the first call of the next
        there.ill(outage.path, 500)
        there.site.world.make_odd(LEAGUE, fatal.key, Odd.ALIEN)

        begun = [await by["operator"].post("/api/scrape", json=ROUND) for _ in range(2)]
        assert [201, 200] == [each.status_code for each in begun]
        [run] = {each.json()["scrapes"][0]["scrape"]["id"] for each in begun}
        await there.drained()

        tasks = {
            each["match_key"]: each
            for each in (await by["viewer"].get(f"/api/scrape/jobs/{run}/tasks")).json()[
                "items"
            ]
        }
        asked = there.asked() - before
        assert {match.key for match in there.truth()} == set(tasks)
        assert f"/{LEAGUE}/2026/rodada/1" == next(iter(asked))
        assert ("SKIPPED", 0) == (
            tasks[stored_before.key]["status"],
            asked[stored_before.path],
        )
        assert ("DONE", 1, 3) == seen(tasks[hiccup.key], asked[hiccup.path])
        assert ("DONE", 2, 5) == seen(tasks[recovers.key], asked[recovers.path])
        assert ("FAILED", 3, 9) == seen(tasks[outage.key], asked[outage.path])
        assert (500, 3) == tuple(tasks[outage.key]["error"][it] for it in ("status", "attempt"))
        assert ("FAILED", 1, 1) == seen(tasks[fatal.key], asked[fatal.path])
        assert ("LAYOUT_CHANGED", 200) == tuple(
            tasks[fatal.key]["error"][it] for it in ("code", "status")
        )
        for match in well:
            assert ("DONE", 1, 1) == seen(tasks[match.key], asked[match.path])

        stored = await there.matches()
        for match in (stored_before, hiccup, recovers, *well):
            stored_as(match, stored[match.key])
        assert {outage.key, fatal.key} == set(tasks) - set(stored)
        assert [] == await there.rows(PARTIAL)
        first, second = [
            read_json(told)["after"]
            for (told,) in await there.rows(WAITS, run=run, key=outage.key)
        ]
        assert 90 <= first <= 120  # minutes, not seconds
        assert 180 <= second <= 240
        for match in (outage, fatal):
            page = f"/api/scrape/tasks/{tasks[match.key]['id']}/snapshot"
            assert 200 == (await by["operator"].get(page)).status_code
        gate = (await by["viewer"].get(f"/api/rounds/{LEAGUE}/2026/1")).json()
        assert (False, sorted([fatal.key, outage.key])) == (gate["complete"], gate["missing"])


async def put_before(there: House, key: str) -> None:
    """By an earlier run, which could read nothing else."""
    there.site.world.draw(Layout.MODERN)
    run, _ = await there.start()
    await there.drained()
    await there.app.write(lambda tx: store.runs.discovered(tx, run, refs(there)))
    await there.drained()
    [match] = [each for each in there.truth() if each.key == key]
    task = (await there.tasks(run))[key]["id"]
    await there.app.write(
        lambda tx: store.tasks.promote(tx, task, page_of(match), "by hand", actor=WHO)
    )
    there.site.world.draw(Layout.CLASSIC)


def seen(task: dict[str, Any], asked: int) -> tuple[str, int, int]:
    return task["status"], task["attempts"], asked
