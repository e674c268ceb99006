"""For each text a vector or the reason why not, and neighbours unharmed: our own n-grams, and OpenAI's shape."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import numpy as np
import pytest
from numpy.typing import NDArray

from retoma import Retoma
from retoma.apps.embeddings.chunks import LARGEST
from retoma.apps.embeddings.providers import (
    Embedded,
    ItemRefused,
    NGrams,
    OpenAI,
    Provider,
    build_provider,
)
from retoma.apps.embeddings.sandbox import DIMS, KEY, MODEL, Odd, build_service, marked
from retoma.engine.rules.errors import Permanent, Throttled, Transient
from retoma.outbound import Outbound
from retoma.sandbox.box import Box
from retoma.secret import Secret
from retoma.settings import Settings
from retoma.toolkit.tools import Tools


def vectors(embedded: Embedded) -> NDArray[Any]:
    return np.array([np.frombuffer(each, "<f4") for each in _made(embedded)])


def codes(embedded: Embedded) -> list[str | None]:
    return [each.code if isinstance(each, ItemRefused) else None for each in embedded.items]


def _made(embedded: Embedded) -> list[bytes]:
    return [each for each in embedded.items if isinstance(each, bytes)]


# — our own n-grams —


async def test_a_text_has_one_vector_of_length_one_alone_or_among_others() -> None:
    provider: Provider = NGrams()
    texts = [f"texto número {n} sobre o caminhão da água" for n in range(provider.most)]

    together = await provider.embed(texts)
    alone = [(await provider.embed([text])).items[0] for text in texts[:5]]

    assert alone == list(together.items[:5])
    assert (provider.most, provider.dims) == vectors(together).shape
    assert np.allclose(1.0, np.linalg.norm(vectors(together), axis=1))


async def test_texts_that_share_words_are_near_and_others_are_not() -> None:
    told = await NGrams().embed(
        [
            "Multa de trânsito aplicada ao motorista",
            "MULTAS DO TRANSITO",
            "receita de bolo de cenoura",
        ]
    )

    near = vectors(told) @ vectors(told).T
    assert near[0, 1] > 0.4
    assert abs(near[0, 2]) < 0.2


async def test_what_is_no_text_is_refused_and_its_neighbours_are_not() -> None:
    """Bad input: empty, blank, half a character, ten megabytes."""
    told = await NGrams().embed(
        ["bom", "", " \n", "meia \ud800 letra", "x" * 10_000_000, "melhor"]
    )

    assert [None, "empty_text", "empty_text", "bad_text", "too_long", None] == codes(told)
    assert (2, 384) == vectors(told).shape


async def test_whatever_has_no_words_has_a_vector_all_the_same() -> None:
    told = await NGrams().embed(["!!!", "a", "ab", "中文字", "🙂", "1", "a" * LARGEST])

    assert [None] * 7 == codes(told)
    assert np.allclose(1.0, np.linalg.norm(vectors(told), axis=1))


async def test_version_1_of_our_n_grams_gives_the_numbers_it_always_gave() -> None:
    """They are kept by model and version: other numbers want another version."""
    told = vectors(await NGrams().embed(["retoma"]))[0]

    plus = {22, 24, 90, 111, 125, 273, 372, 376, 377}
    assert plus == set(np.flatnonzero(told > 0))
    assert {11, 33, 63, 118} == set(np.flatnonzero(told < 0))
    assert np.allclose(13**-0.5, np.abs(told[np.flatnonzero(told)]))


# — OpenAI's shape —

URL = "https://embeddings.test/v1"


@asynccontextmanager
async def openai(
    there: Any = None, *, key: str = KEY, dims: int = DIMS
) -> AsyncIterator[OpenAI]:
    transport = httpx2.ASGITransport(app=there or build_service())
    async with Outbound(transport=transport) as out:
        yield OpenAI(out, URL, Secret(key), MODEL, dims)


@asynccontextmanager
async def answering(body: Any, status: int = 200, **headers: str) -> AsyncIterator[OpenAI]:
    """Somebody who always says the same, whatever it is."""
    said = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=said, headers=headers)

    async with Outbound(transport=httpx2.MockTransport(answer)) as out:
        yield OpenAI(out, URL, None, MODEL, 2)


async def arm(there: Box, **fault: Any) -> None:
    transport = httpx2.ASGITransport(app=there)
    async with httpx2.AsyncClient(transport=transport, base_url="http://box.test") as client:
        assert 204 == (await client.post("/_sandbox/faults", json=fault)).status_code


async def test_many_texts_are_one_request_and_what_it_cost_is_told() -> None:
    there = build_service()
    async with openai(there) as provider:
        told = await provider.embed([f"texto {n}" for n in range(256)])

    [line] = there.log.read(0)
    assert 256 == line["texts"]
    assert (256, DIMS) == vectors(told).shape
    assert np.allclose(1.0, np.linalg.norm(vectors(told), axis=1))
    assert (MODEL, 1) == (told.used.model, told.used.calls)
    assert told.used.input_tokens > 256
    assert told.used.usd == pytest.approx(told.used.input_tokens * 0.02 / 1e6)


async def test_rows_are_taken_by_their_index_whatever_their_order() -> None:
    texts = [f"texto número {n}" for n in range(20)]
    async with openai() as provider:
        straight = await provider.embed(texts)
        shuffled = await provider.embed([*texts, marked("x", Odd.SHUFFLED)])

    assert list(straight.items) == list(shuffled.items[:20])


async def test_a_bad_row_is_refused_and_its_neighbours_are_not() -> None:
    """Wrong dims, NaN, infinite, all zeros, fewer rows than asked, two rows for one text."""
    odd = {
        Odd.WRONG_DIMS: "wrong_dims",
        Odd.NAN: "not_finite",
        Odd.INFINITE: "not_finite",
        Odd.ZERO: "not_finite",
        Odd.MISSING: "missing_row",
        Odd.TWICE: "missing_row",
        Odd.BASE64: None,
    }
    texts = [text for kind in odd for text in ("bom", marked("mau", kind))]
    async with openai() as provider:
        told = await provider.embed([*texts, "bom"])

    assert list(odd.values()) == codes(told)[1::2]
    assert {None} == set(codes(told)[0::2])


async def test_texts_that_nobody_may_send_are_refused_before_anybody_is_asked() -> None:
    there = build_service()
    async with openai(there) as provider:
        told = await provider.embed(["", "a", "meia \ud800", "x" * 10_000_000, "b"])
        nothing = await provider.embed([" ", ""])

    assert ["empty_text", None, "bad_text", "too_long", None] == codes(told)
    assert ["empty_text", "empty_text"] == codes(nothing)
    assert [2] == [line["texts"] for line in there.log.read(0)]


async def test_of_a_request_refused_as_a_whole_only_the_text_to_blame_is_refused() -> None:
    there = build_service()
    texts = [f"texto {n}" for n in range(256)]
    texts[100] = marked("mau", Odd.REFUSED)
    async with openai(there) as provider:
        told = await provider.embed(texts)

    assert {100: "refused"} == {n: code for n, code in enumerate(codes(told)) if code}
    assert told.used.calls == len(there.log.read(0)) <= 17
    assert 255 == sum(line["texts"] for line in there.log.read(0) if line["paid"])


async def test_where_all_are_refused_the_halving_ends() -> None:
    there = build_service()
    async with openai(there) as provider:
        told = await provider.embed([marked(f"mau {n}", Odd.REFUSED) for n in range(256)])

    assert {"refused"} == set(codes(told))
    assert len(there.log.read(0)) <= 15


@pytest.mark.parametrize("n", [1, 2, 256])
async def test_a_service_that_refuses_every_request_rejects_them_and_blames_no_text(
    n: int,
) -> None:
    """What it says is of a text of ours: it quotes nobody's."""
    there = build_service()
    await arm(there, trouble="status", status=400, times=None)
    async with openai(there) as provider:
        with pytest.raises(Permanent) as told:
            await provider.embed([f"segredo {place}" for place in range(n)])

    assert ("rejected", "openai: 400 Invalid request.") == (told.value.code, str(told.value))
    assert len(there.log.read(0)) <= 4


async def test_a_lone_text_is_blamed_only_where_the_service_takes_another() -> None:
    there = build_service()
    async with openai(there) as provider:
        told = await provider.embed([marked("mau", Odd.REFUSED)])

    assert ["refused"] == codes(told)
    assert 2 == told.used.calls == len(there.log.read(0))
    assert told.used.input_tokens > 0


async def test_of_more_texts_to_blame_than_can_be_found_nobody_else_is_blamed() -> None:
    there = build_service()
    texts = [f"texto {n}" for n in range(256)]
    for n in range(0, 128, 4):
        texts[n] = marked(f"mau {n}", Odd.REFUSED)
    async with openai(there) as provider:
        told = await provider.embed(texts)

    found = codes(told)
    assert {None} == set(found[128:])
    assert not [n for n, code in enumerate(found) if code == "refused" and n % 4]
    assert len(there.log.read(0)) <= 64


@pytest.mark.parametrize(
    ("fault", "raises", "code", "wait"),
    [
        ({"status": 429, "retry_after": 7}, Throttled, "throttled", 7.0),
        ({"status": 500}, Transient, "transient", None),
        ({"status": 502}, Transient, "transient", None),
        ({"status": 503, "retry_after": 3}, Transient, "transient", 3.0),
        ({"status": 401}, Permanent, "unauthorized", None),
        ({"status": 402}, Permanent, "budget", None),
        ({"status": 403}, Permanent, "unauthorized", None),
        ({"status": 404}, Permanent, "wrong_address", None),
    ],
)
async def test_a_call_that_came_to_nothing_is_raised(
    fault: dict[str, Any], raises: type[Exception], code: str, wait: float | None
) -> None:
    there = build_service()
    await arm(there, trouble="status", **fault)
    async with openai(there) as provider:
        with pytest.raises(raises) as told:
            await provider.embed(["a", "b"])

    assert code == told.value.code  # type: ignore[attr-defined]
    assert wait == getattr(told.value, "retry_after", None)


async def test_a_wrong_key_and_a_used_up_quota_want_a_person() -> None:
    async with openai(key="wrong") as provider:
        with pytest.raises(Permanent) as told:
            await provider.embed(["a"])
        assert "unauthorized" == told.value.code
        assert "openai: 401 Incorrect API key provided." == str(told.value)
    async with openai() as provider:
        with pytest.raises(Permanent) as told:
            await provider.embed(["a", marked("b", Odd.QUOTA)])
        assert "budget" == told.value.code


async def test_a_reply_that_never_came_is_transient_and_unsure() -> None:
    def broken(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("never")

    async with Outbound(transport=httpx2.MockTransport(broken)) as out:
        with pytest.raises(Transient) as told:
            await OpenAI(out, URL, None, MODEL, 2).embed(["a"])

    assert "unsure" == told.value.code


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"data": {}}', b'{"data": null}', b"[" * 100_000],
)
async def test_an_answer_of_no_use_is_transient(body: bytes) -> None:
    async with answering(body) as provider:
        with pytest.raises(Transient) as told:
            await provider.embed(["a"])

    assert "bad_answer" == told.value.code


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"embedding": [1, 0]}, None),  # nobody names a place, and none is missing
        ({"index": 0, "embedding": [3, 4]}, None),
        ({"index": 0, "embedding": [1e300, 1e300]}, None),
        ({"index": 1, "embedding": [1, 0]}, "missing_row"),
        ({"index": True, "embedding": [1, 0]}, "missing_row"),
        ({"index": -1, "embedding": [1, 0]}, "missing_row"),
        ({"index": "0", "embedding": [1, 0]}, "missing_row"),
        ({"index": 0, "embedding": None}, "not_finite"),
        ({"index": 0, "embedding": ["a", 1]}, "not_finite"),
        ({"index": 0, "embedding": [True, 1]}, "not_finite"),
        ({"index": 0, "embedding": [[1, 0]]}, "not_finite"),
        ({"index": 0, "embedding": "%%%"}, "not_finite"),
        ({"index": 0, "embedding": "AAAA"}, "not_finite"),
        ({"index": 0, "embedding": []}, "wrong_dims"),
        ({"index": 0, "embedding": [1, 10**400]}, "not_finite"),
        ("row", "missing_row"),
    ],
)
async def test_a_row_is_believed_only_in_the_shape_that_was_asked_for(
    row: Any, code: str | None
) -> None:
    usage = {"prompt_tokens": "many", "cost": -1}
    async with answering({"data": [row], "usage": usage}) as provider:
        told = await provider.embed(["a"])

    assert [code] == codes(told)
    assert (0, None) == (told.used.input_tokens, told.used.usd)


async def test_the_settings_name_the_provider() -> None:
    async with Retoma("sqlite:///:memory:") as retoma, Outbound() as out:
        told = {"embeddings_provider": "openai", "embeddings_model": "m", "embeddings_dims": 7}
        ours = build_provider(Tools(retoma, out))
        other = build_provider(Tools(retoma, out, settings=Settings().model_copy(update=told)))

    assert ("ngrams", 384, False) == (ours.name, ours.dims, ours.paid)
    assert ("openai", "m", 7, True) == (other.name, other.model, other.dims, other.paid)
