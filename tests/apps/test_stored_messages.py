"""A message that was stored of a failure is told in the language of whoever reads the page."""

from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import pytest

from retoma import Context, Park, Permanent, Retoma, Skip, Transient
from retoma.apps.ads import store
from retoma.apps.ads.model import Event
from retoma.bootstrap import install_applications
from retoma.db import adhoc
from retoma.engine.rules.states import ParkReason
from retoma.web import build_site
from retoma.words import Language, say
from retoma.words.recall import tell_stored
from tests.apps.people import EN, PT
from tests.engine.aids import rows
from tests.web.aids import AT_ONCE, PATIENT, ROOT_KEY, application, client, set_up
from tests.words.spoken import OTHERS, foreign

PAGES = ((EN, Language.EN), (PT, Language.PT_BR))
# One message of each application and of what it stands on, as it is stored, and in Portuguese.
MESSAGES = (
    (say("its address is none of the site's"), "o endereço não é deste site"),
    (say("{n} shops did not answer", n=3), "3 lojas não responderam"),
    (say("{n} chunks, {most} at most", n=7, most=5), "7 trechos, no máximo 5"),
    (say("{worker} has no storage_domain", worker="w1"), "w1 não tem storage_domain"),
    (say("{where}: answered {status}", where="site", status=503), "site: respondeu 503"),
    ("o arquivo está corrompido", "o arquivo está corrompido"),
)


@asynccontextmanager
async def site_of(app: Retoma, url: str, **given: Any) -> Any:
    chosen = set_up(url, **given)
    others = install_applications(app, chosen)
    site = build_site(app, chosen, [application(app), *others], bound=PATIENT)
    async with app:
        browser = client(site, ROOT_KEY)
        yield browser
        await browser.aclose()


@pytest.mark.parametrize("how", ["dies", "fails", "parks", "skips"])
async def test_a_job_tells_it_in_the_language_of_its_page(database_url, how):
    app = Retoma(database_url)

    @app.job(retry=AT_ONCE)
    async def work(ctx: Context, n: int) -> Any:
        message, _ = MESSAGES[n]
        match how:
            case "dies":
                raise Permanent(message, code="CODE")
            case "fails":
                raise Transient(message, code="CODE")
            case "parks":
                return Park(message, ParkReason.CONFIG)
            case _:
                return Skip(message)

    async with site_of(app, database_url) as browser:
        for n in range(len(MESSAGES)):
            await app.submit("work", n)
        await app.run(until_idle=True)

        for job, (stored, portuguese) in enumerate(MESSAGES, start=1):
            told = {}
            for headers, language in PAGES:
                page = await browser.get(f"/jobs/{job}", headers=headers)
                assert [] == foreign(page.text, language), (stored, language)
                told[language] = unescape(OTHERS.sub("", page.text))
            assert portuguese in told[Language.PT_BR], stored
            assert portuguese not in told[Language.EN], stored
            assert tell_stored(portuguese, Language.EN) in told[Language.EN], stored
        for headers, language in PAGES:
            assert [] == foreign((await browser.get("/dead", headers=headers)).text, language)


async def test_a_mission_keeps_portuguese_and_tells_both(database_url):
    app = Retoma(database_url)
    async with site_of(app, database_url, applications="ads") as browser:
        wanted = {
            "date_start": "2026-01-01",
            "date_end": "2026-01-02",
            "media_type": "all",
            "languages": ["pt"],
        }
        added = await browser.post("/api/missions", json={"missions": [wanted]})
        [mission] = added.json()["ids"]
        database = await app.database()
        await database.write(
            lambda tx: tx.run(adhoc("UPDATE ads_missions SET status = 'running'")), verb="run"
        )
        message = say("the session of the worker {worker} hangs (stuck)", worker="w1")
        await app.write(
            lambda tx: store.tell_of_failure(
                tx, mission, "ERROR102", message, Event.SESSION_FAILED, {}
            )
        )

        english, portuguese = [
            unescape((await browser.get(f"/ads/missions/{mission}", headers=headers)).text)
            for headers in (EN, PT)
        ]
        kept = await rows(database, "SELECT error_message FROM ads_missions")

    said = "a sessão do worker w1 travou (stuck)"
    assert [(said,)] == [tuple(each) for each in kept]
    assert "the session of the worker w1 hangs (stuck)" in english
    assert said not in english
    assert said in portuguese
    assert [] == foreign(english, Language.EN)
    assert [] == foreign(portuguese, Language.PT_BR)
