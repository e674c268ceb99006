"""Keys and models are checked before work is started: by `retoma doctor`, and on the forms."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from retoma.apps.documents import APP as DOCUMENTS
from retoma.apps.documents import checks as documents
from retoma.apps.documents.store import projects
from retoma.apps.embeddings import checks as embeddings
from retoma.apps.quotes import APP as QUOTES
from retoma.apps.quotes import checks as quotes
from retoma.apps.tools import Tools
from retoma.manifest import Standing
from retoma.sandbox.documents import KEY as OPENROUTER_KEY
from retoma.sandbox.documents import build_service as documents_services
from retoma.sandbox.embeddings import KEY as EMBEDDINGS_KEY
from retoma.sandbox.embeddings import build_service as embeddings_services
from tests.apps.documents.aids import RULES, WHO
from tests.apps.documents.aids import house as documents_house
from tests.apps.people import people
from tests.apps.quotes.aids import serving, world

READY, UNKNOWN, REFUSED = Standing.READY, Standing.UNKNOWN, Standing.REFUSED
WRONG = SecretStr("wrong")


@pytest.mark.parametrize(
    ("told", "stand", "said"),
    [
        ({}, (READY, READY), "Anthropic takes the key and knows the model"),
        ({"anthropic_key": None}, (UNKNOWN, READY), "RETOMA_ANTHROPIC_KEY is not set here"),
        ({"anthropic_key": WRONG}, (REFUSED, READY), "Anthropic refuses the key (HTTP 401)"),
        (
            {"anthropic_model": "gone"},
            (REFUSED, READY),
            "Anthropic does not have the model gone",
        ),
        ({"serpapi_key": WRONG}, (READY, REFUSED), "SerpAPI refuses the key (HTTP 401)"),
    ],
)
async def test_the_services_of_quotes_are_asked_for_nothing_that_costs(
    sqlite_url, tmp_path, told, stand, said
):
    async with world(sqlite_url, tmp_path, told=told) as there:
        found = await quotes.check(there.app.tools["quotes"])

        assert stand == tuple(each.standing for each in found)
        assert said in [str(each.found) for each in found]
        for each in found:
            assert (each.todo is None) == (each.standing is READY)
        assert [] == [
            line
            for service in ("anthropic", "serpapi")
            for line in there.services.log(service)
            if line["path"] in ("/v1/messages", "/search.json")
        ]


async def test_the_form_says_what_is_wrong_before_a_lote_is_imported(database_url, tmp_path):
    """In the reader's language; to operators alone; an application without checks has no such page."""
    told = {"anthropic_key": WRONG, "serpapi_key": None}
    async with (
        world(database_url, tmp_path, told=told) as there,
        people(there.app, QUOTES, database_url) as who,
    ):
        html = {"Accept": "text/html", "Accept-Language": "pt-BR"}
        form = await who["operator"].get("/quotes/import", headers=html)
        said = await who["operator"].get("/checks/quotes", headers=html)

        assert 'hx-get="/checks/quotes"' in form.text
        assert "Anthropic recusa a chave (HTTP 401)" in said.text
        assert "RETOMA_SERPAPI_KEY não está definida aqui" in said.text
        assert 403 == (await who["viewer"].get("/checks/quotes", headers=html)).status_code
        assert 404 == (await who["operator"].get("/checks/none", headers=html)).status_code


@pytest.mark.parametrize(
    ("key", "model", "stand"),
    [
        (OPENROUTER_KEY, None, {READY}),
        (OPENROUTER_KEY, "sandbox/none", {READY, REFUSED}),
        ("wrong", None, {REFUSED}),
        (None, None, {UNKNOWN}),
    ],
)
async def test_the_model_of_each_project_is_asked_for(database_url, key, model, stand):
    async with serving(documents_services()) as port:
        told = {
            "openrouter_url": f"http://127.0.0.1:{port}/api/v1",
            "openrouter_key": key,
            "openrouter_model": "sandbox/reader-1",
        }
        async with documents_house(database_url, DOCUMENTS, **told) as there:
            rules = replace(RULES, model=model)
            await there.app.write(lambda tx: projects.add_project(tx, "PGE", rules, actor=WHO))
            found = await documents.check(there.app.tools["documents"])

    assert stand == {each.standing for each in found}
    if model is not None:
        assert f"OpenRouter does not have the model {model}" in [
            str(each.found) for each in found
        ]


@pytest.mark.parametrize(
    ("provider", "key", "model", "stand"),
    [
        ("openai", EMBEDDINGS_KEY, None, [READY]),
        ("openai", "wrong", None, [REFUSED]),
        ("openai", EMBEDDINGS_KEY, "away", [UNKNOWN]),
        ("ngrams", None, None, []),
    ],
)
async def test_the_provider_of_embeddings_is_asked(
    sqlite_url, tmp_path, provider, key, model, stand
):
    """An endpoint that only speaks as OpenAI's may have no list of models: its 404 says nothing."""
    async with serving(embeddings_services()) as port, world(sqlite_url, tmp_path) as there:
        told = {
            "embeddings_provider": provider,
            "embeddings_url": f"http://127.0.0.1:{port}/v1",
            "embeddings_key": None if key is None else SecretStr(key),
            "embeddings_model": model or "sandbox-embed-1",
        }
        there_tools = there.app.tools["quotes"]
        settings = there.settings.model_copy(update=told)
        tools = Tools(there.app, there_tools.out, settings=settings)
        found = await embeddings.check(tools)

    assert stand == [each.standing for each in found]
