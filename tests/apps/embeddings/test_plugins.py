"""Providers of other packages, of other services and of this machine: found, asked as they want it, and checked."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from retoma import Retoma
from retoma.apps.embeddings.kinds import stories
from retoma.apps.embeddings.providers import (
    Cohere,
    InputType,
    ItemRefused,
    Local,
    Provider,
    Voyage,
    build_provider,
)
from retoma.apps.embeddings.sandbox import DIMS, KEY, MODEL, Odd, build_service, marked
from retoma.engine.rules.errors import BadInput, Permanent, Throttled
from retoma.outbound import Outbound
from retoma.secret import Secret
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from tests.apps.embeddings.aids import Counting, house

PACKAGE = """
import numpy as np
from retoma.apps.embeddings.providers import Embedded, ItemRefused, Refusal, Used, pack_vector

class Letters:
    name = model = "letters"
    version, dims, most, most_tokens, paid, asymmetric = "1", 2, 10, 100, False, True
    def __init__(self, config): self.config = config
    async def embed(self, texts, input_type):
        return Embedded([self.item(text, input_type) for text in texts], Used(self.model))
    def item(self, text, input_type):
        if text == "long": return b"\\0" * 12
        if text == "nan": return np.array([np.nan, 1], dtype="<f4").tobytes()
        if text == "text": return "text"
        if text == "refused": return ItemRefused.by(Refusal.REFUSED)
        return pack_vector(np.array([len(text), input_type == "query"], dtype=float), 2)

class Few(Letters):
    async def embed(self, texts, input_type):
        told = await super().embed(texts, input_type)
        return Embedded(told.items[1:], told.used)

def nothing(config): return object()
def half(config):
    made = Letters(config)
    made.dims = "2"
    return made
"""


def package(folder: Path, name: str, *points: str) -> None:
    """As pip would leave it beside ours."""
    (folder / "letters.py").write_text(PACKAGE)
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "\n".join(["[retoma.embeddings.providers]", *points])
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@asynccontextmanager
async def tools(**told: Any) -> AsyncIterator[Tools]:
    async with Retoma("sqlite:///:memory:") as retoma, Outbound() as out:
        yield Tools(retoma, out, settings=Settings().model_copy(update=told))


def codes(items: Any) -> list[str | None]:
    return [each.code if isinstance(each, ItemRefused) else None for each in items]


# — of another package —


async def test_a_provider_of_another_package_is_found_by_its_entry_point(folder):
    package(folder, "letters", "letters = letters:Letters")

    async with tools(embeddings_provider="letters", embeddings_model="m") as made:
        provider = build_provider(made)
        told = await provider.embed(["abc"], InputType.QUERY)
        kinds = {each.name.removeprefix("embeddings.") for each in stories(made)}
        assert {"completion", "document", "question", "tidy"} == kinds

    assert ("letters", 2, 10, True) == (
        provider.name,
        provider.dims,
        provider.most,
        provider.asymmetric,
    )
    [item] = told.items
    assert isinstance(item, bytes)
    assert np.allclose([0.9487, 0.3162], np.frombuffer(item, "<f4"), atol=1e-4)


async def test_what_another_package_returns_is_checked_before_it_is_kept(folder):
    package(folder, "letters", "letters = letters:Letters", "few = letters:Few")

    async with tools(embeddings_provider="letters") as made:
        told = await build_provider(made).embed(["a", "long", "nan", "text", "refused"])
    async with tools(embeddings_provider="few") as made:
        few = await build_provider(made).embed(["a", "b"])

    assert [None, "wrong_dims", "not_finite", "wrong_dims", "refused"] == codes(told.items)
    assert ["missing_row"] * 2 == codes(few.items)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("letras", r"letras is not installed; there are cohere, half, letters, local, ngrams"),
        ("nothing", r"letters:nothing returned no provider of embeddings: name"),
        ("half", r"letters:half returned no provider of embeddings: dims"),
    ],
)
async def test_what_is_no_provider_is_refused_by_name(folder, name, why):
    points = ("letters = letters:Letters", "nothing = letters:nothing", "half = letters:half")
    package(folder, "letters", *points)

    async with tools(embeddings_provider=name) as made:
        with pytest.raises(BadInput, match=why):
            build_provider(made)


async def test_no_package_takes_the_name_of_another_or_one_of_ours(folder):
    package(folder, "one", "letters = letters:Letters", "openai = letters:Letters")
    package(folder, "two", "letters = letters:Letters")

    for name in ("letters", "openai"):
        async with tools(embeddings_provider=name) as made:
            with pytest.raises(BadInput, match=f"{name} is brought by letters:Letters"):
                build_provider(made)


async def test_an_application_with_a_provider_that_is_not_installed_does_not_start():
    async with tools(embeddings_provider="letras") as made:
        with pytest.raises(BadInput, match="letras is not installed"):
            stories(made)


# — of other services —

URL = "https://embeddings.test"


@asynccontextmanager
async def service(which: Any, path: str, **told: Any) -> AsyncIterator[tuple[Provider, Any]]:
    there = build_service()
    asked: list[Mapping[str, Any]] = []
    inner = httpx2.ASGITransport(app=there)

    class Listening(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            asked.append(json.loads(await request.aread()))
            return await inner.handle_async_request(request)

    async with Outbound(transport=Listening()) as out:
        yield which(out, f"{URL}{path}", Secret(KEY), MODEL, DIMS, **told), asked


@pytest.mark.parametrize(
    ("which", "path", "body", "query"),
    [
        (
            Voyage,
            "/voyage/v1",
            {"model": MODEL, "input": ["a"], "input_type": "document", "truncation": False},
            "query",
        ),
        (
            Cohere,
            "/cohere/v2",
            {
                "model": MODEL,
                "texts": ["a"],
                "input_type": "search_document",
                "embedding_types": ["float"],
                "truncate": "NONE",
            },
            "search_query",
        ),
    ],
)
async def test_a_service_is_told_what_a_text_is_for(which, path, body, query):
    async with service(which, path) as (provider, asked):
        [document] = (await provider.embed(["a"])).items
        told = await provider.embed(["a"], InputType.QUERY)
    async with service(which, path, dimensions=256) as (short, shortened):
        [vector] = (await short.embed(["a"])).items

    assert [body, {**body, "input_type": query}] == asked
    assert document != told.items[0]
    assert told.used.input_tokens > 0
    assert 256 == short.dims == shortened[0]["output_dimension"]
    assert isinstance(vector, bytes)
    assert 4 * 256 == len(vector)


@pytest.mark.parametrize(("which", "path"), [(Voyage, "/voyage/v1"), (Cohere, "/cohere/v2")])
async def test_of_a_service_every_text_is_judged_alone(which, path):
    texts = ["bom", marked("x", Odd.NAN), marked("x", Odd.REFUSED), "", "melhor"]
    async with service(which, path) as (provider, asked):
        told = await provider.embed(texts)

    assert [None, "not_finite", "refused", "empty_text", None] == codes(told.items)
    assert told.used.calls == len(asked) > 1


async def test_a_row_that_cohere_leaves_out_is_nobodys():
    async with service(Cohere, "/cohere/v2") as (provider, _):
        told = await provider.embed(["bom", marked("x", Odd.MISSING), "melhor"])

    assert ["missing_row"] * 3 == codes(told.items)


async def test_texts_beyond_the_batch_or_the_tokens_of_a_request_go_in_several():
    async with service(Cohere, "/cohere/v2") as (provider, asked):
        told = await provider.embed([f"texto {n}" for n in range(200)])
        assert [96, 96, 8] == [len(each["texts"]) for each in asked]
        assert {None} == set(codes(told.items))
        asked.clear()
        await provider.embed(["palavra " * 4_000 for _ in range(20)])  # 640,000 characters
        assert [12, 8] == [len(each["texts"]) for each in asked]
    async with service(Voyage, "/voyage/v1", most_tokens=10) as (provider, asked):
        told = await provider.embed(["x" * 41, "curto"])

    assert ["too_long", None] == codes(told.items)
    assert [["curto"]] == [each["input"] for each in asked]


async def test_a_wrong_key_and_too_many_requests_are_what_they_are():
    def throttled(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(
            429, content=b'{"message": "slow"}', headers={"retry-after": "9"}
        )

    async with Outbound(transport=httpx2.MockTransport(throttled)) as out:
        with pytest.raises(Throttled) as told:
            await Cohere(out, URL, None, MODEL, DIMS).embed(["a"])
    async with Outbound(transport=httpx2.ASGITransport(app=build_service())) as out:
        with pytest.raises(Permanent) as wrong:
            await Voyage(out, f"{URL}/voyage/v1", Secret("no"), MODEL, DIMS).embed(["a"])

    assert 9.0 == told.value.retry_after
    assert "unauthorized" == wrong.value.code


async def test_a_date_to_wait_for_is_measured_against_their_own_clock():
    """Retry-After as a date: their clock is an hour behind ours, and they ask for 42 seconds."""

    def throttled(_: httpx2.Request) -> httpx2.Response:
        told = {
            "date": "Thu, 19 Nov 2026 10:00:00 GMT",
            "retry-after": "Thu, 19 Nov 2026 10:00:42 GMT",
        }
        return httpx2.Response(429, content=b"{}", headers=told)

    async with Outbound(transport=httpx2.MockTransport(throttled)) as out:
        with pytest.raises(Throttled) as told:
            await Cohere(out, URL, None, MODEL, DIMS).embed(["a"])

    assert 42.0 == told.value.retry_after


async def test_a_key_that_is_named_for_one_service_goes_to_no_other(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://openai.test/v1")
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-voyage-key")
    sent: dict[str, str | None] = {}

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent[request.url.host] = request.headers.get("authorization")
        return httpx2.Response(400, content=b"{}")

    for name in ("openai", "cohere", "voyage"):
        monkeypatch.setenv("RETOMA_EMBEDDINGS_PROVIDER", name)
        async with (
            Retoma("sqlite:///:memory:") as app,
            Outbound(transport=httpx2.MockTransport(answer)) as out,
        ):
            provider = build_provider(Tools(app, out, settings=Settings()))
            with pytest.raises(Permanent, match=f"{name}: 400"):
                await provider.embed(["a"])

    assert sent == {
        "openai.test": "Bearer sk-openai-key",
        "api.cohere.com": None,
        "api.voyageai.com": "Bearer pa-voyage-key",
    }


# — of this machine —

STANDS_IN = """
import numpy as np
class TextEmbedding:
    made = []
    def __init__(self, model_name, cache_dir=None, local_files_only=False):
        if "absent" in model_name: raise ValueError(f"Could not find {model_name}")
        TextEmbedding.made.append((model_name, cache_dir, local_files_only))
    def passage_embed(self, texts, batch_size=256):
        for text in texts: yield np.array([len(text), 1], dtype=np.float32)
    def query_embed(self, query):
        for text in query: yield np.array([len(text), 2], dtype=np.float32)
"""


@pytest.fixture
def fastembed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import importlib
    import sys

    (folder / "fastembed.py").write_text(STANDS_IN)
    monkeypatch.delitem(sys.modules, "fastembed", raising=False)
    yield importlib.import_module("fastembed")
    monkeypatch.delitem(sys.modules, "fastembed")


async def test_a_local_model_is_loaded_once_from_its_folder_and_never_fetched(fastembed):
    told = {"embeddings_model": "m", "embeddings_dims": 2, "embeddings_folder": "models"}
    async with tools(embeddings_provider="local", **told) as made:
        provider = build_provider(made)
        documents = await provider.embed(["a", "", "bbb"])
        queries = await provider.embed(["a"], InputType.QUERY)
        wrong = await Local("models", "m", 3).embed(["a"])

    assert [None, "empty_text", None] == codes(documents.items)
    assert documents.items[0] != queries.items[0]
    assert ["wrong_dims"] == codes(wrong.items)
    assert [("m", "models", True)] * 2 == fastembed.TextEmbedding.made


async def test_a_local_model_that_is_not_there_waits_for_a_person(fastembed):
    with pytest.raises(Permanent, match="RETOMA_EMBEDDINGS_FOLDER") as told:
        await Local(None, "absent").embed(["a"])

    assert "config" == told.value.code


async def test_without_the_extra_a_local_model_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(Permanent, match=r"install retoma\[local\]"):
        await Local(None).embed(["a"])


# — what is kept of them —


async def test_a_query_to_an_asymmetric_model_never_takes_the_vector_of_a_document(
    database_url,
):
    provider = Counting(asymmetric=True, paid=True)
    async with house(database_url, provider) as here:
        await here.add(("a.txt", "jardim de rosas"))
        await here.drained()
        await here.searcher()._vector("jardim de rosas", "ana")
        await here.searcher()._vector("jardim de rosas", "ana")

    assert [["jardim de rosas"]] * 2 == provider.calls
    assert [InputType.DOCUMENT, InputType.QUERY] == provider.input_types
