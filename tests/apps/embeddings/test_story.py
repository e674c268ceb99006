"""The story of a document: cut once, every text embedded once, its neighbours unharmed whatever it is."""

import asyncio
from typing import Any

import httpx2
import pytest

from retoma.apps.embeddings import store
from retoma.apps.embeddings.batcher import AT_ONCE
from retoma.apps.embeddings.model import KIND, MOST_BYTES, NewDocument, flaw_of
from retoma.apps.embeddings.providers import OpenAI
from retoma.apps.embeddings.sandbox import DIMS, KEY, MODEL, Odd, build_service, marked
from retoma.engine.rules.errors import Throttled, Transient
from retoma.engine.rules.states import State
from retoma.outbound import Outbound
from retoma.sandbox.faults import Fault, FaultKind
from retoma.secret import Secret
from retoma.words import Language, restored, tell
from tests.apps.embeddings.aids import Counting, House, house, long_text
from tests.engine.aids import eventually, running

VECTORS = "SELECT hash FROM embeddings_vectors"


async def states(there: House) -> dict[str, tuple[State | None, str | None]]:
    return {name: (each.state, each.code) for name, each in (await there.documents()).items()}


async def test_a_document_is_cut_embedded_and_found_to_be_done(database_url):
    """W5: one vector for each text; the document says how many chunks it has."""
    async with house(database_url) as there:
        await there.collection(size=100, overlap=0)
        await there.add(("a.txt", long_text("casa", 5)), ("b.txt", "uma frase só"))
        await there.drained()

        told = await there.documents()
        assert {"a.txt": ("done", None), "b.txt": ("done", None)} == await states(there)
        assert all(each.embedded for each in told.values())
        assert 1 == told["b.txt"].chunks
        chunks = sum(each.chunks for each in told.values())
        assert chunks == len(await there.rows(VECTORS)) == there.provider.asked.total()
        assert [] == await there.rows("SELECT hash FROM embeddings_flights")
        progress = await there.progress()
        assert (2, 2, 0, chunks) == (
            progress.documents,
            progress.embedded,
            progress.waiting,
            progress.chunks,
        )


async def test_w5_a_text_is_embedded_once_across_documents_runs_and_collections(database_url):
    """W5: the same chunks under other names, in another collection, in a later run."""
    async with house(database_url) as there:
        text = long_text("igual", 6)
        await there.add(*((f"{n}.txt", text) for n in range(8)))
        await there.add(("x.txt", text), to="outra")
        await there.drained()
        await there.add(("mais-tarde.txt", text), to="terceira")
        await there.drained()

        assert {1} == set(there.provider.asked.values())
        assert len(there.provider.asked) == len(await there.rows(VECTORS))
        assert 10 == len(
            await there.rows(
                "SELECT id FROM jobs WHERE kind LIKE '%document' AND state = 'done'"
            )
        )


async def test_texts_of_many_jobs_go_out_in_one_call(database_url):
    """Micro-batches: while two calls are on their way all other texts gather, and go out together."""
    provider = Counting(gate=asyncio.Event())
    async with house(database_url, provider) as there:
        await there.add(*((f"{n}.txt", f"texto número {n} " * 3) for n in range(30)))
        async with running(there.app, slots=30):

            async def all_asked() -> bool:
                on_their_way = provider.asked.total()
                return on_their_way > 0 and 30 == on_their_way + there.gathered()

            await eventually(all_asked)
            assert provider.gate is not None
            provider.gate.set()
            await eventually(_done(there, 30))
        assert {1} == set(provider.asked.values())
        assert 30 == provider.asked.total()
        assert len(provider.calls) <= AT_ONCE + 1
        jobs = await there.rows("SELECT DISTINCT job FROM embeddings_vectors")
        assert 30 == len(jobs), "each job keeps its own"


def _done(there: House, n: int) -> Any:
    async def done() -> bool:
        rows = await there.rows(
            "SELECT count(*) FROM jobs WHERE kind = 'embeddings.document' AND state = 'done'"
        )
        return rows == [(n,)]

    return done


async def test_what_the_provider_refuses_ends_its_own_document_alone(database_url):
    """Show 4: wrong dims, NaN, a missing row, a text that is not taken: in one call with their neighbours."""
    codes = {"wrong_dims": 5, "not_finite": 5, "missing_row": 5, "too_long": 1, "refused": 1}
    provider = Counting(refuses={f"mal-{code}": code for code in codes})
    async with house(database_url, provider) as there:
        bad = [(f"{code}.txt", f"um texto mal-{code} aqui") for code in codes]
        good = [(f"{n}.txt", f"um bom texto {n}") for n in range(10)]
        await there.add(*bad, *good)
        await there.drained()

        ends = await states(there)
        assert {(f"{code}.txt", ("dead", code)) for code in codes} <= ends.items()
        assert {("done", None)} == {ends[name] for name, _ in good}
        for code, attempts in codes.items():
            assert attempts == provider.asked[f"um texto mal-{code} aqui"]
        assert {1} == {provider.asked[text] for _, text in good}


async def test_one_bad_chunk_costs_its_document_nothing_that_was_made(database_url):
    """What its other chunks came to is kept: mended, a replay asks for the one alone."""
    provider = Counting(refuses={"mal": "refused"})
    async with house(database_url, provider) as there:
        await there.collection(size=100, overlap=0)
        await there.add(("a.txt", long_text("bem", 4) + "\n\nmal " + "mal " * 20))
        await there.drained()
        assert {"a.txt": ("dead", "refused")} == await states(there)
        asked = provider.asked.total()

        provider.refuses = {}
        [job] = [each.job for each in (await there.documents()).values() if each.job]
        await there.app.retry(job)
        await there.drained()
        assert {"a.txt": ("done", None)} == await states(there)
        assert asked + 1 == provider.asked.total()


async def test_a_failed_call_is_tried_again_by_each_job(database_url):
    """What fails as a whole fails nobody for good."""
    provider = Counting(fails=[Transient("503"), Transient("503")])
    async with house(database_url, provider) as there:
        await there.add(*((f"{n}.txt", f"texto {n}") for n in range(5)))
        await there.drained()
        assert {("done", None)} == {*(await states(there)).values()}


async def test_a_paid_call_has_its_intent_committed_first_and_each_job_pays_its_share(
    database_url,
):
    """Q1: before anything is asked its step has begun; what all pay together is what the call cost."""
    provider = Counting(paid=True, tokens=1000, gate=asyncio.Event())
    async with house(database_url, provider) as there:
        await there.add(*((f"{n}.txt", f"texto pago {n} " * (n + 1)) for n in range(7)))
        async with running(there.app, slots=7):
            begun = "SELECT job FROM steps WHERE name = 'pedir' AND state = 'begun'"

            async def asked() -> bool:
                return len(provider.calls) > 0

            await eventually(asked)
            assert len(await there.rows(begun)) >= len(provider.calls[0])
            assert provider.gate is not None
            provider.gate.set()
            await eventually(_done(there, 7))
        assert [] == await there.rows(begun)
        spent = await there.rows(
            "SELECT sum(amount) FROM costs WHERE scope = 'job' AND unit = 'input_tokens'"
        )
        assert [(1000 * len(provider.calls),)] == [tuple(map(int, each)) for each in spent]
        assert {1} == set(provider.asked.values())


@pytest.mark.parametrize(
    "error", [Throttled("they answered 429", retry_after=7), Transient("they answered 503")]
)
async def test_a_failed_call_stands_in_the_timeline_of_each_document_it_served(
    database_url, error
):
    """It is an attempt of each of them, and the document's own metric counts it."""
    provider = Counting(paid=True, fails=[error])
    async with house(database_url, provider) as there:
        await there.add(*((f"{n}.txt", f"texto servido {n}") for n in range(3)))
        await there.drained()

        jobs = await there.app.jobs(kind=KIND)
        served = [job.id for job in jobs if job.failures]
        assert served
        assert len(provider.calls[0]) == len(served)
        for job in served:
            [failed] = [e for e in await there.app.events(job) if e.type == "failed"]
            assert str(error) in failed.details["message"]
            assert failed.details["after"] >= (error.retry_after or 0)
        metrics = await there.read(store.jobs.metrics)
        assert (len(served), 3) == (metrics.jobsRetried, metrics.jobsCompleted)
        attempts = await there.rows("SELECT attempts FROM queue_jobs ORDER BY id")
        assert [2] * len(served) == sorted(n for (n,) in attempts if n > 1)


async def test_a_document_of_many_slices_is_embedded_slice_by_slice(database_url):
    provider = Counting(most=16)
    async with house(database_url, provider) as there:
        await there.collection(size=100, overlap=0)
        await there.add(("livro.txt", long_text("longo", 100)))
        await there.drained()
        told = (await there.documents())["livro.txt"]
        assert told.embedded
        assert told.chunks == provider.asked.total() >= 100
        assert {1} == set(provider.asked.values())
        assert 16 == max(map(len, provider.calls))


# — bad input —


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty_text"),
        (" \n\t ", "empty_text"),
        ("\u200b \u3000", None),
        ("x" * (10 << 20), "too_large"),
        ("é" * (MOST_BYTES // 2 + 1), "too_large"),
        ("metade \ud800 de um", "bad_text"),
        ("um nulo \0 aqui", "bad_text"),
        ("\ufffe\U0010ffff", None),
    ],
)
def test_why_a_text_is_not_taken(text, code):
    flaw = flaw_of(3, NewDocument("a.txt", text))
    assert code == (None if flaw is None else flaw.code)
    assert flaw is None or text.strip() == "" or text[:20] not in flaw.message


@pytest.mark.parametrize("name", ["", "  ", "x" * 501, "\ud800", "a\0b"])
def test_a_name_that_is_none_is_told_of(name):
    flaw = flaw_of(0, NewDocument(name, "texto"))
    assert flaw is not None
    assert "bad_name" == flaw.code


async def test_what_cannot_be_taken_is_told_of_and_its_neighbours_are_taken(database_url):
    """Show 4: empty, 10 MB, halves of characters; the same name twice: each an item, none a failure."""
    async with house(database_url) as there:
        added = await there.add(
            ("vazio.txt", ""),
            ("bom.txt", "um bom texto"),
            ("grande.txt", "x" * (10 << 20)),
            ("metade.txt", "\ud83d"),
            ("bom.txt", "outro texto do mesmo nome"),
            ("último.txt", "outro bom texto"),
        )
        assert {1, 5} == added.new.keys()
        told = {flaw.place: flaw.code for flaw in added.flaws}
        assert {0: "empty_text", 2: "too_large", 3: "bad_text", 4: "twice"} == told
        await there.drained()
        assert {"bom.txt": ("done", None), "último.txt": ("done", None)} == await states(there)


async def test_odd_texts_are_embedded_or_end_alone(database_url):
    """Control characters, bidi marks, one endless word, emoji: whatever can be kept is tried."""
    async with house(database_url) as there:
        odd = {
            "controle": "\x01\x02\x1b[31m vermelho \x7f",
            "rtl": "\u202eolá\u202c שלום עליכם",
            "palavra": "a" * 50_000,
            "emoji": "👩‍👩‍👧‍👦 " * 300,
            "invisível": "\u200b\u200b",
            "fim": "\ufffe\U0010ffff fim",
        }
        await there.add(*odd.items(), ("bom", "um bom texto"))
        await there.drained()
        ends = await states(there)
        assert ("done", None) == ends["bom"]
        assert {"done", "dead"} >= {state for state, _ in ends.values()}
        assert {None, "not_finite", "empty_text"} >= {code for _, code in ends.values()}


# — again —


async def test_the_same_again_is_the_same_document_and_another_text_takes_its_place(
    database_url,
):
    async with house(database_url) as there:
        first = await there.add(("a.txt", "um texto"))
        await there.drained()
        again = await there.add(("a.txt", "um texto"))
        assert ({}, {0: first.new[0]}, None) == (again.new, again.already, again.batch)

        other = await there.add(("a.txt", "outro texto"))
        await there.drained()
        assert other.new[0] != first.new[0]
        assert ["outro texto"] == [
            text for (text,) in await there.rows("SELECT text FROM embeddings_chunks")
        ]


async def test_what_was_deleted_is_found_no_more_and_its_vectors_go_unless_needed(
    database_url, test_clock
):
    async with house(database_url) as there:
        added = await there.add(
            ("a.txt", "só aqui"), ("b.txt", "nos dois"), ("c.txt", "nos dois")
        )
        await there.drained()
        assert 2 == len(await there.rows(VECTORS))

        for place in (0, 1):
            await there.remove(added.new[place])
        assert ["c.txt"] == [*await there.documents()]
        assert 2 == len(await there.rows(VECTORS)), "what was paid for is kept for a while"
        test_clock.jump(3700)
        assert 1 == await there.app.write(store.chunks.tidy)
        assert 1 == len(await there.rows(VECTORS))

        await there.add(("d.txt", "só aqui"))
        await there.drained()
        assert 2 == there.provider.asked["só aqui"]


async def test_what_is_wanted_again_within_the_hour_is_not_paid_for_again(
    database_url, test_clock
):
    async with house(database_url) as there:
        added = await there.add(("a.txt", "só aqui"))
        await there.drained()
        await there.remove(added.new[0])
        await there.add(("b.txt", "só aqui"))
        await there.drained()
        test_clock.jump(3700)
        assert 0 == await there.app.write(store.chunks.tidy)
        assert {"só aqui": 1} == there.provider.asked


async def test_a_document_that_is_deleted_while_it_waits_or_is_at_work_is_canceled(
    database_url,
):
    provider = Counting(gate=asyncio.Event())
    async with house(database_url, provider) as there:
        added = await there.add(("a.txt", "um texto"))
        async with running(there.app):

            async def asked() -> bool:
                return len(provider.calls) > 0

            await eventually(asked)
            await there.remove(added.new[0])
            assert provider.gate is not None
            provider.gate.set()

            async def ended() -> bool:
                rows = await there.rows("SELECT state FROM jobs WHERE kind LIKE '%document'")
                return rows == [("canceled",)]

            await eventually(ended)
        assert [] == await there.rows("SELECT text FROM embeddings_chunks")
        assert [] == await there.rows(VECTORS)


# — another model —


async def test_a_collection_is_embedded_anew_as_a_batch_that_goes_on_where_it_was(database_url):
    """Re-embedding: documents are found by their old vectors until they have new ones; asked again it
    submits what is left alone."""
    async with house(database_url) as there:
        await there.add(*((f"{n}.txt", f"texto {n}") for n in range(10)))
        await there.drained()
        old = there.provider.asked.total()

        there.provider.version = "2"
        there.provider.refuses = {"texto 7": "refused"}
        batch, jobs = await there.reembed()
        assert batch is not None
        assert 10 == jobs
        assert (None, 0) == await there.reembed()
        before = await there.rows(
            """SELECT v.version FROM embeddings_chunks k
               JOIN embeddings_documents d ON d.id = k.document AND d.edition = k.edition
               JOIN embeddings_vectors v ON v.hash = k.hash"""
        )
        assert [("1",)] * 10 == before
        await there.drained()
        progress = await there.progress()
        assert (10, 9, 1) == (progress.documents, progress.embedded, progress.failed)

        there.provider.refuses = {}
        again, left = await there.reembed()
        assert again not in (None, batch)
        assert 1 == left
        await there.drained()
        assert 10 == (await there.progress()).embedded
        assert old + 11 == there.provider.asked.total()
        found = await there.rows(
            """SELECT d.edition, k.edition, v.version FROM embeddings_chunks k
               JOIN embeddings_documents d ON d.id = k.document
               JOIN embeddings_vectors v ON v.hash = k.hash"""
        )
        assert [(2, 2, "2")] * 10 == found


async def test_other_rules_cost_nothing_for_texts_that_stay_the_same(database_url):
    async with house(database_url) as there:
        await there.add(("a.txt", "curto"), ("b.txt", long_text("longo", 4)))
        await there.drained()
        old = there.provider.asked.total()
        await there.reembed(size=100, overlap=0)
        await there.drained()
        assert 2 == (await there.progress()).embedded
        assert there.provider.asked.total() > old
        assert 1 == there.provider.asked["curto"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "rejected"),
        (401, "unauthorized"),
        (402, "budget"),
        (403, "unauthorized"),
        (404, "wrong_address"),
    ],
)
async def test_a_request_that_the_service_rejects_fails_no_document(database_url, status, code):
    """The key, the credit, the model: documents wait, an alert says why, and resumed they are embedded."""
    box = build_service()
    transport = httpx2.ASGITransport(app=box)
    async with Outbound(transport=transport) as out:
        provider: Any = OpenAI(out, "https://embeddings.test/v1", Secret(KEY), MODEL, DIMS)
        async with house(database_url, provider) as there:
            box._faults.arm(Fault(trouble=FaultKind.STATUS, status=status, times=None))
            await there.add(*((f"{n}.txt", f"texto rejeitado {n}") for n in range(5)))
            await there.drained()
            assert {("parked", code)} == {*(await states(there)).values()}
            [waiting] = await there.read(store.jobs.parked_by_code)
            assert (code, 5) == (waiting.code, waiting.documents)
            assert waiting.message.startswith(f"openai: {status} ")
            assert "texto" not in waiting.message
            alert = (await there.read(store.jobs.watch))["waiting_for_configuration"]
            assert "5 documents wait for configuration: " in restored(alert)
            assert "5 documentos esperam" in tell(restored(alert), Language.PT_BR)

            box._faults.clear()
            for each in (await there.documents()).values():
                await there.app.resume(each.job or 0)
            await there.drained()
            assert {("done", None)} == {*(await states(there)).values()}
            assert {} == await there.read(store.jobs.watch)


async def test_a_text_that_the_service_does_not_take_is_its_own_document(database_url):
    box = build_service()
    async with Outbound(transport=httpx2.ASGITransport(app=box)) as out:
        provider: Any = OpenAI(out, "https://embeddings.test/v1", Secret(KEY), MODEL, DIMS)
        async with house(database_url, provider) as there:
            await there.add(("a.txt", marked("mau", Odd.REFUSED)), ("b.txt", "bom"))
            await there.drained()
            assert {"a.txt": ("dead", "refused"), "b.txt": ("done", None)} == await states(
                there
            )


async def test_a_collection_of_another_model_waits_for_a_person(database_url):
    async with house(database_url) as there:
        await there.add(("a.txt", "texto"))
        there.provider.version = "2"
        await there.drained()
        assert {"a.txt": ("parked", "other_model")} == await states(there)
        assert 1 == (await there.progress()).parked

        await there.reembed()
        [job] = [each.job for each in (await there.documents()).values() if each.job]
        await there.app.resume(job)
        await there.drained()
        assert {"a.txt": ("done", None)} == await states(there)
