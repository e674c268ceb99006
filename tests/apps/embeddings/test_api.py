"""Embeddings over the API: collections, documents one by one told of, jobs, DLQ, metrics, search, and one trace."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from retoma import Retoma
from retoma.apps.embeddings import APP
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.testing import FakeClock, drain
from retoma.toolkit.tools import Tools
from tests.apps.embeddings.aids import Counting, install
from tests.apps.people import people
from tests.test_otel import Kept, id_of, parent_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ROOT = "/api/embeddings"
TEXTS = {
    "casa.txt": "A casa na colina tinha janelas azuis e um jardim de rosas.",
    "mar.txt": "O mar batia nas pedras, e os barcos voltavam antes da noite.",
    "pão.txt": "O padeiro amassa o pão de madrugada, com farinha, água e sal.",
}


@asynccontextmanager
async def site(
    url: str, provider: Counting | None = None, **how: Any
) -> AsyncIterator[tuple[Retoma, dict[str, httpx2.AsyncClient]]]:
    async with Retoma(url, clock=FakeClock(), **how) as app, Outbound() as out:
        tools = Tools(app, out, settings=Settings(database_url=url))
        if provider is None:
            app.install(APP, tools)
        else:
            install(app, tools, provider)
        async with people(app, APP, url) as those:
            yield app, those


def documents(texts: dict[str, str], collection: str = "livros") -> dict[str, Any]:
    given = [{"name": name, "text": text} for name, text in texts.items()]
    return {"collection": collection, "documents": given}


async def test_a_corpus_is_embedded_searched_changed_and_deleted(database_url):
    """The whole way: W5 over the API."""
    async with site(database_url) as (app, those):
        olga, vera = those["operator"], those["viewer"]
        await _is_made_once(olga)
        await _takes_texts_once(olga)
        await drain(app)
        last = await _is_listed_whole(vera)
        await _is_searched(vera)
        await _is_cut_anew(app, olga)
        await _is_deleted(olga, vera, last)


async def _is_made_once(olga: Any) -> None:
    made = await olga.post(f"{ROOT}/collections", json={"name": "livros", "size": 200})
    assert 201 == made.status_code, made.text
    assert ("retoma-ngrams", 384, 200, 0) == (
        *(made.json()[name] for name in ("model", "dims", "size")),
        made.json()["progress"]["documents"],
    )
    twice = await olga.post(f"{ROOT}/collections", json={"name": "livros"})
    assert 409 == twice.status_code


async def _takes_texts_once(olga: Any) -> None:
    added = await olga.post(f"{ROOT}/documents", json=documents(TEXTS))
    assert 201 == added.status_code, added.text
    told = added.json()
    assert ([0, 1, 2], [], []) == (
        *([each["place"] for each in told["new"]], told["already"], told["refused"]),
    )
    again = await olga.post(f"{ROOT}/documents", json=documents(TEXTS))
    assert 200 == again.status_code
    assert 3 == len(again.json()["already"])


async def _is_listed_whole(vera: Any) -> int:
    """The number of the last of its documents."""
    seen = (await vera.get(f"{ROOT}/collections/livros")).json()
    assert (3, 3, 0) == tuple(
        seen["progress"][name] for name in ("documents", "embedded", "failed")
    )
    listed = (await vera.get(f"{ROOT}/collections/livros/documents?limit=2")).json()
    assert [True, True] == [each["embedded"] for each in listed["items"]]
    rest = await vera.get(
        f"{ROOT}/collections/livros/documents", params={"cursor": listed["next"]}
    )
    [last] = rest.json()["items"]
    assert "completed" == last["status"]
    return int(last["id"])


async def _is_searched(vera: Any) -> None:
    found = await vera.post(
        f"{ROOT}/search",
        json={"collection": "livros", "text": "jardim de rosas", "limit": 1},
    )
    assert 200 == found.status_code, found.text
    [hit] = found.json()["hits"]
    assert "casa.txt" == hit["name"]
    assert "rosas" in {hit["text"][a:b] for a, b in hit["spans"]}


async def _is_cut_anew(app: Retoma, olga: Any) -> None:
    fewer = await olga.post(
        f"{ROOT}/collections/livros/reembed", json={"size": 100, "overlap": 0}
    )
    assert 200 == fewer.status_code, fewer.text
    assert (True, 3) == (fewer.json()["changed"], fewer.json()["jobs"])
    await drain(app)
    same = (await olga.post(f"{ROOT}/collections/livros/reembed", json={})).json()
    assert (False, None, 0) == (same["changed"], same["batch"], same["jobs"])
    assert 3 == same["collection"]["progress"]["embedded"]


async def _is_deleted(olga: Any, vera: Any, document: int) -> None:
    gone = await olga.delete(f"{ROOT}/documents/{document}")
    assert 204 == gone.status_code
    assert 404 == (await vera.get(f"{ROOT}/documents/{document}")).status_code
    assert 204 == (await olga.delete(f"{ROOT}/collections/livros")).status_code
    assert 404 == (await vera.get(f"{ROOT}/collections/livros")).status_code
    assert [] == (await vera.get(f"{ROOT}/collections")).json()["items"]


async def test_who_only_looks_changes_nothing(database_url):
    async with site(database_url) as (_, those):
        vera = those["viewer"]
        for refused in (
            vera.post(f"{ROOT}/collections", json={"name": "x"}),
            vera.post(f"{ROOT}/documents", json=documents(TEXTS)),
            vera.delete(f"{ROOT}/collections/livros"),
            vera.post(f"{ROOT}/dlq/1/replay"),
        ):
            assert 403 == (await refused).status_code


async def test_bad_documents_are_told_of_one_by_one_and_bad_bodies_as_a_whole(database_url):
    """Show 4: empty, 10 MB, halves of characters: items; what is no submission at all: 422, and nothing happened."""
    async with site(database_url) as (app, those):
        olga = those["operator"]
        odd = {"vazio": "", "metade": "\ud800", "grande": "x" * (10 << 20), "bom": "um texto"}
        answer = await olga.post(
            f"{ROOT}/documents",
            content=json.dumps(documents(odd)),
            headers={"content-type": "application/json"},
        )
        assert 201 == answer.status_code, answer.text[:500]
        told = answer.json()
        assert [3] == [each["place"] for each in told["new"]]
        assert ["empty_text", "bad_text", "too_large"] == [e["code"] for e in told["refused"]]
        await drain(app)

        bad: list[Any] = [
            [],
            {"collection": "livros"},
            {"collection": "livros", "documents": []},
            {"collection": "livros", "documents": [{"name": "a"}]},
            {"collection": "livros", "documents": [{"name": 1, "text": "b"}]},
            {"collection": "../x", "documents": [{"name": "a", "text": "b"}]},
            {"collection": "livros", "documents": [{"name": "a", "text": "b"}] * 1001},
        ]
        for body in bad:
            refused = await olga.post(f"{ROOT}/documents", json=body)
            assert 422 == refused.status_code, (body, refused.text)
        deep = await olga.post(
            f"{ROOT}/documents",
            content="[" * 100_000,
            headers={"content-type": "application/json"},
        )
        assert 400 == deep.status_code
        for body in ({"name": "a/b"}, {"name": "a", "size": 5}, {"name": "a", "overlap": 790}):
            assert 422 == (await olga.post(f"{ROOT}/collections", json=body)).status_code
        assert 404 == (await olga.get(f"{ROOT}/collections/nenhuma/documents")).status_code
        assert 404 == (await olga.get(f"{ROOT}/jobs/999")).status_code
        seen = (await olga.get(f"{ROOT}/collections/livros")).json()
        assert 1 == seen["progress"]["documents"]


async def test_jobs_the_dlq_and_metrics_by_the_documents_names(database_url):
    """W2 W3: a job that failed for good is in the DLQ; replayed it is a new generation."""
    provider = Counting(model="retoma-ngrams", refuses={"mal": "not_finite"})
    async with site(database_url, provider) as (app, those):
        olga, vera = those["operator"], those["viewer"]
        await olga.post(f"{ROOT}/documents", json=documents({"a": "mal", "b": "bom texto"}))
        await drain(app)

        jobs = (await vera.get(f"{ROOT}/jobs")).json()["items"]
        assert {"completed", "failed"} == {each["status"] for each in jobs}
        [failed] = (await vera.get(f"{ROOT}/jobs?status=failed")).json()["items"]
        assert (5, 5, "not_finite", "embeddings.document") == tuple(
            failed[name] for name in ("attempts", "maxAttempts", "errorCode", "jobType")
        )
        assert [] == (await vera.get(f"{ROOT}/jobs?lockedBy=ninguem")).json()["items"]
        [dead] = (await vera.get(f"{ROOT}/dlq")).json()["items"]
        assert failed["id"] == dead["id"]
        assert "refused" in dead["message"]
        assert [] == (await vera.get(f"{ROOT}/dlq?code=other")).json()["items"]

        metrics = (await vera.get(f"{ROOT}/metrics")).json()
        assert (6, 1, 1, 4, 0) == tuple(
            metrics["total"][name]
            for name in (
                *("jobsClaimed", "jobsCompleted", "jobsFailed", "jobsRetried", "stuckJobCount"),
            )
        )
        [worker] = metrics["workers"].values()
        assert metrics["total"] == worker

        again = await olga.post(f"{ROOT}/dlq/{dead['id']}/replay")
        assert 200 == again.status_code
        assert 2 == again.json()["generation"]
        assert 409 == (await olga.post(f"{ROOT}/dlq/{dead['id']}/replay")).status_code
        [done] = (await vera.get(f"{ROOT}/jobs?status=completed")).json()["items"]
        refused = await olga.post(f"{ROOT}/dlq/{done['id']}/replay")
        assert 409 == refused.status_code, refused.text
        assert "only a dead job is retried here" in refused.text


async def test_one_trace_from_the_request_to_the_stored_vector(database_url):
    """Step 5 of the document: correlation id and tracing, by an in-memory exporter."""
    kept = Kept()
    async with site(database_url, traces=kept.traces) as (app, those):
        answer = await those["operator"].post(
            f"{ROOT}/documents",
            json=documents({"a.txt": "um texto"}),
            headers={"traceparent": PARENT, "x-correlation-id": "pedido-17"},
        )
        assert 201 == answer.status_code
        await drain(app)
        [job] = (await those["viewer"].get(f"{ROOT}/jobs")).json()["items"]
        assert "pedido-17" == job["correlationId"]

    spans = kept.spans
    stored, submit = spans["vectors.store"], spans["submit embeddings.document"]
    assert {TRACE} == {f"{each.context.trace_id:032x}" for each in (stored, submit)}
    by_id = {id_of(each): each for each in spans.values()}
    way = []
    at = parent_of(stored)
    while at in by_id:
        way.append(by_id[at].name)
        at = parent_of(by_id[at])
    assert "submit embeddings.document" == way[-1]
    assert PARENT.split("-")[2] == at
    assert 1 == (stored.attributes or {})["retoma.n"]


async def test_a_search_is_filtered_by_metadata_and_done_by_words_too(database_url):
    async with site(database_url) as (app, those):
        given = documents(TEXTS)
        given["documents"][0]["metadata"] = {"autor": "Ana", "ano": 2024}
        given["documents"].append({"name": "x", "text": "y", "metadata": {"a": [1]}})
        given["documents"].append({"name": "z", "text": "y", "metadata": {"a": None}})
        added = await those["operator"].post(f"{ROOT}/documents", json=given)
        await drain(app)
        first = added.json()["new"][0]["id"]
        seen = await those["viewer"].get(f"{ROOT}/documents/{first}")

        async def found(**asked: Any) -> Any:
            body = {"collection": "livros", "text": "jardim", **asked}
            return await those["viewer"].post(f"{ROOT}/search", json=body)

        only = (await found(metadata={"ano": "2024"})).json()
        plain = (await found(mode="vector")).json()
        wrong = await found(metadata={"a b": "c"})
        other = await found(mode="telepathy")

    assert ["bad_metadata"] * 2 == [each["code"] for each in added.json()["refused"]]
    assert {"autor": "Ana", "ano": 2024} == seen.json()["metadata"]
    [hit] = only["hits"]
    assert (0, {"autor": "Ana", "ano": 2024}) == (hit["duplicates"], hit["metadata"])
    assert (3, 0) == (len(plain["hits"]), plain["unindexed"])
    assert (422, 422) == (wrong.status_code, other.status_code)
