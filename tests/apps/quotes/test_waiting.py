"""A wrong or missing key hangs no quote unseen: who waits for it is counted, told why, and how it is cured."""

import pytest
from pydantic import SecretStr

from retoma.apps.quotes import APP, store
from retoma.sandbox.faults import Fault, FaultKind
from retoma.words import Language, restored, tell
from tests.apps.people import people
from tests.apps.quotes.aids import world

PT = {"Accept-Language": "pt-BR", "Accept": "text/html"}


@pytest.mark.parametrize(
    ("key", "code", "said"),
    [
        (None, "no_key", "RETOMA_ANTHROPIC_KEY"),
        (SecretStr("sk-ant-wrong"), "unauthorized", "anthropic: 401"),
    ],
)
async def test_quotes_that_wait_for_a_key_are_counted_and_say_so(
    database_url, tmp_path, key, code, said
):
    async with (
        world(database_url, tmp_path, told={"anthropic_key": key}) as there,
        people(there.app, APP, database_url) as who,
    ):
        vera = who["viewer"]
        lote = (await there.lote(range(2))).lote
        await there.drained()

        status = (await vera.get(f"/api/system/batch-status/{lote}")).json()
        [waiting] = status["waiting_for"]
        [quote, _] = (await vera.get(f"/api/quotes?lote={lote}")).json()["items"]
        one = (await vera.get(f"/api/quotes/{quote['id']}")).json()["waiting_for"]
        told = await vera.get(
            f"/api/quotes/{quote['id']}", headers={"Accept-Language": "pt-BR"}
        )
        stats = (await vera.get("/api/system/processing-stats")).json()

        assert (code, 2) == (waiting["code"], waiting["quotes"])
        assert said in waiting["message"]
        assert waiting["cure"].endswith("then resume.")
        assert {**waiting, "quotes": 1} == one
        assert told.json()["waiting_for"]["cure"].endswith("depois retome.")
        assert 2 == status["stuck_count"] == stats["stuck_count"]
        database = await there.app.database()
        found = await database.read(store.watch)
        alert = found["waiting_for_configuration"]
        assert (2, 2) == (alert["quotes"], alert[code])
        text = restored(alert)
        assert "2 quotes wait for configuration: the key of the service" in text
        assert "2 cotações esperam configuração: " in tell(text, Language.PT_BR)
        assert "the key" not in tell(text, Language.PT_BR)
        lote_page = await vera.get(f"/quotes/lotes/{lote}", headers=PT)
        assert "não está definida onde os executores rodam" in lote_page.text or key
        assert "is not set" not in lote_page.text


async def test_what_was_resumed_waits_for_nobody(database_url, tmp_path):
    async with (
        world(database_url, tmp_path, told={"anthropic_key": None}) as there,
        people(there.app, APP, database_url) as who,
    ):
        lote = (await there.lote(range(2))).lote
        await there.drained()

        resumed = await who["operator"].post(f"/api/system/resume-batch/{lote}")

        assert 200 == resumed.status_code, resumed.text
        status = (await who["viewer"].get(f"/api/system/batch-status/{lote}")).json()
        assert ([], 0) == (status["waiting_for"], status["stuck_count"])
        database = await there.app.database()
        assert {} == await database.read(store.watch)


@pytest.mark.parametrize(
    ("service", "status", "code"),
    [
        ("anthropic", 400, "rejected"),
        ("anthropic", 402, "budget"),
        ("anthropic", 403, "unauthorized"),
        ("anthropic", 404, "wrong_address"),
        ("serpapi", 400, "rejected"),
        ("serpapi", 401, "unauthorized"),
        ("serpapi", 402, "budget"),
        ("serpapi", 403, "unauthorized"),
        ("serpapi", 404, "wrong_address"),
    ],
)
async def test_a_rejection_that_concerns_every_quote_fails_none(
    database_url, tmp_path, service, status, code
):
    """The credit, the key, the model: the quote waits, is counted, and goes on once it is resumed."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        faults = there.services.boxes[service]._faults
        faults.arm(Fault(trouble=FaultKind.STATUS, status=status))
        quote = await there.quote(2)
        await there.drained()

        seen = (await who["viewer"].get(f"/api/quotes/{quote}")).json()
        stats = (await who["viewer"].get("/api/system/processing-stats")).json()
        database = await there.app.database()
        assert ("PROCESSING", code) == (seen["status"], seen["waiting_for"]["code"])
        assert str(status) in seen["waiting_for"]["message"]
        assert 1 == stats["stuck_count"]
        assert 1 == (await database.read(store.watch))["waiting_for_configuration"]["quotes"]
        await who["operator"].post(f"/api/system/recover-quote/{quote}")
        await there.drained()
        assert "DONE" == (await there.seen(quote))["status"]
