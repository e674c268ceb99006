"""An endpoint of OpenAI's shape in a box: real shapes, ill on demand, and a log that knows who was paid for."""

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from retoma.apps.embeddings.sandbox import (
    DIMS,
    KEY,
    MODEL,
    Odd,
    build_service,
    embedded_twice,
    fingerprint,
    marked,
)
from retoma.engine.ports import Clock
from retoma.sandbox.box import Box

SIGNED = {"authorization": f"Bearer {KEY}"}


@asynccontextmanager
async def asked(box: Box) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=box)
    async with httpx2.AsyncClient(transport=transport, base_url="http://box.test") as client:
        yield client


async def embed(client: httpx2.AsyncClient, *texts: str, **more: Any) -> httpx2.Response:
    told = {"model": MODEL, "input": list(texts), **more}
    return await client.post("/v1/embeddings", json=told, headers=SIGNED)


async def test_an_answer_has_openais_shape_and_a_row_of_length_one_for_each_text() -> None:
    async with asked(build_service()) as client:
        told = (await embed(client, "um bolo", "outro bolo")).json()

    assert ("list", MODEL) == (told["object"], told["model"])
    assert [("embedding", 0), ("embedding", 1)] == [
        (row["object"], row["index"]) for row in told["data"]
    ]
    assert told["usage"]["prompt_tokens"] == told["usage"]["total_tokens"] > 0
    for row in told["data"]:
        assert DIMS == len(row["embedding"])
        assert math.isclose(1, math.hypot(*row["embedding"]), abs_tol=1e-6)


async def test_the_same_text_has_the_same_vector_whoever_asks() -> None:
    async with asked(build_service(1)) as one, asked(build_service(2)) as other:
        first = (await embed(one, "x", "um bolo")).json()["data"][1]["embedding"]

        assert first == (await embed(other, "um bolo")).json()["data"][0]["embedding"]


@pytest.mark.parametrize(
    ("told", "status", "code"),
    [
        ({"model": "gpt"}, 404, "model_not_found"),
        ({"input": []}, 400, None),
        ({"input": ["a", ""]}, 400, None),
        ({"input": ["x" * 40_000]}, 400, None),
        ({"input": 5}, 400, None),
        ({"dimensions": 3}, 400, None),
        ({"encoding_format": "int8"}, 400, None),
        ({"input": [marked("a", Odd.REFUSED)]}, 400, None),
        ({"input": [marked("a", Odd.QUOTA)]}, 429, "insufficient_quota"),
    ],
)
async def test_what_the_real_one_refuses_is_refused(
    told: dict[str, Any], status: int, code: str | None
) -> None:
    async with asked(build_service()) as client:
        answer = await embed(client, "a", **told)

    assert (status, code) == (answer.status_code, answer.json()["error"]["code"])


async def test_nobody_is_served_without_the_key() -> None:
    async with asked(build_service()) as client:
        told = {"model": MODEL, "input": "a"}
        answer = await client.post("/v1/embeddings", json=told)

    assert (401, "invalid_api_key") == (
        answer.status_code,
        answer.json()["error"]["code"],
    )


async def test_a_text_goes_wrong_as_its_mark_says_and_its_neighbours_do_not() -> None:
    kinds = [
        Odd.WRONG_DIMS,
        Odd.NAN,
        Odd.INFINITE,
        Odd.ZERO,
        Odd.MISSING,
        Odd.TWICE,
        Odd.BASE64,
    ]
    async with asked(build_service()) as client:
        answer = await embed(client, "bom", *(marked("mau", odd) for odd in kinds))

    rows: dict[int, list[Any]] = {}
    for row in json.loads(answer.content)["data"]:
        rows.setdefault(row["index"], []).append(row["embedding"])
    assert DIMS - 1 == len(rows[1][0])
    assert math.isnan(rows[2][0][0])
    assert math.isinf(rows[3][0][0])
    assert not any(rows[4][0])
    assert 5 not in rows
    assert rows[6][0] != rows[6][1]
    assert isinstance(rows[7][0], str)
    assert DIMS == len(rows[0][0])


async def test_rows_may_come_in_another_order_each_with_its_index() -> None:
    texts = [*map(str, range(20)), marked("x", Odd.SHUFFLED)]
    async with asked(build_service()) as client:
        rows = (await embed(client, *texts)).json()["data"]

    places = [row["index"] for row in rows]
    assert places != sorted(places) == list(range(21))


async def test_the_log_knows_texts_by_their_fingerprints_and_who_was_paid_for_twice(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log.jsonl"
    box = build_service(log=log)
    async with asked(box) as client:
        await client.post("/_sandbox/faults", json={"trouble": "status", "status": 429})
        refused = await embed(client, "a", "b")
        await embed(client, "a", "b")
        await embed(client, "b", "c")

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert 429 == refused.status_code
    assert "rate_limit_exceeded" == refused.json()["error"]["code"]
    assert [False, True, True] == [bool(line.get("paid")) for line in lines]
    assert [fingerprint("a"), fingerprint("b")] == lines[1]["inputs"]
    assert {f"{MODEL} {fingerprint('b')}": 2} == embedded_twice(lines)
    assert KEY not in log.read_text()


class Watched(Clock):
    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.give_way()


async def test_at_pace_1_it_takes_as_long_as_the_real_one() -> None:
    clock = Watched()
    async with asked(build_service(pace=1, clock=clock)) as client:
        await embed(client, "a")

    assert 0.1 <= clock.slept[0] <= 0.6
