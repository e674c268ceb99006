"""OpenRouter in a box and the files of an office: real shapes, the truth by number, a log as witness."""

import csv
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from retoma.apps.documents.sandbox import (
    AWAY,
    ENDS,
    KEY,
    LABELS,
    MODEL,
    Odd,
    Papers,
    build_service,
    fingerprint,
    paid_twice,
)
from retoma.cli.sandbox import papers
from retoma.engine.ports import Clock
from retoma.sandbox.box import Box

TRUTH = Papers(7)
COMPLETIONS = "/api/v1/chat/completions"
SIGNED = {"authorization": f"Bearer {KEY}"}
SCHEMA = {
    "type": "object",
    "properties": {"label": {"enum": list(LABELS)}, "confidence": {}, "justification": {}},
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}


@asynccontextmanager
async def asked(box: Box) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=box)
    async with httpx2.AsyncClient(transport=transport, base_url="http://box.test") as client:
        yield client


class Hasty(Clock):
    """For whom waiting takes no time."""

    async def sleep(self, seconds: float) -> None:
        await self.give_way()


async def post(there: Box, told: dict[str, Any]) -> None:
    """Without a client, which would not take half an answer."""
    scope = {"type": "http", "method": "POST", "path": COMPLETIONS, "query_string": b""}
    headers = [(b"host", b"box.test"), (b"authorization", f"Bearer {KEY}".encode())]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(told).encode(), "more_body": False}

    async def send(_: Any) -> None:
        pass

    await there({**scope, "scheme": "http", "headers": headers}, receive, send)


def question(text: str, tag: str = "documento-0a1b", **more: Any) -> dict[str, Any]:
    said = [
        {"role": "system", "content": "Classifique."},
        {"role": "user", "content": f"<{tag}>\n{text}\n</{tag}>"},
    ]
    return {"model": MODEL, "messages": said, "response_format": FORMAT, **more}


async def ask(client: httpx2.AsyncClient, n: int, odd: Odd | None = None) -> dict[str, Any]:
    told = question("\n".join(TRUTH.text(n, odd)))
    answer = await client.post(COMPLETIONS, json=told, headers=SIGNED)
    assert 200 == answer.status_code
    return dict(answer.json())


# — papers —


def test_the_same_seed_makes_the_same_files_and_no_two_are_alike():
    first = [TRUTH.make(n) for n in range(60)]

    assert first == [Papers(7).make(n) for n in range(60)]
    assert 60 == len({each.content for each in first})
    assert first[0].content != Papers(8).make(0).content
    assert {"pdf", "docx", "txt", "html"} == {each.name.rpartition(".")[2] for each in first}
    assert set(LABELS) == {each.label for each in first}


def test_an_odd_one_has_a_code_or_a_label_and_says_so():
    for odd in Odd:
        paper = TRUTH.make(3, odd)
        assert ENDS[odd] == paper.code
        assert (paper.label is None) == (paper.code is not None)
        assert paper.codigo.endswith(odd)


def test_a_folder_is_written_with_its_manifest_and_what_is_expected(tmp_path, capsys):
    papers(tmp_path / "in", count=20, seed=7, odd=5)

    named = list(csv.DictReader(lines_of(tmp_path / "in/manifesto.csv")))
    truth = list(csv.DictReader(lines_of(tmp_path / "in.expected.csv")))
    assert 20 == len(named) == len(truth)
    assert {"manifesto.csv", *(each["arquivo"] for each in named)} == {
        each.name for each in (tmp_path / "in").iterdir()
    }
    assert 5 == sum(each["codigo"].count("-") == 2 for each in truth)
    assert all(bool(each["label"]) != bool(each["code"]) for each in truth)
    assert "20" in capsys.readouterr().out


# — the model —


async def test_the_model_finds_the_label_of_every_paper():
    there = build_service(7)
    async with asked(there) as client:
        for n in range(40):
            told = await ask(client, n)
            [choice] = told["choices"]
            said = json.loads(choice["message"]["content"])
            assert (TRUTH.label(n), "stop") == (said["label"], choice["finish_reason"])
            assert MODEL == told["model"]
            assert told["usage"]["cost"] > 0

    lines = there.log.read(0)
    assert list(range(40)) == [line["item"] for line in lines]
    assert fingerprint("\n".join(TRUTH.text(0))) == lines[0]["input"]
    assert {} == paid_twice(lines)
    assert KEY not in json.dumps(lines)
    assert "PROCURADORIA" not in json.dumps(lines)


async def test_a_document_that_closes_its_own_tag_is_obeyed():
    """H-30: why whoever asks must not let it."""
    text = "\n".join(TRUTH.text(3, Odd.INJECTION))
    async with asked(build_service(7)) as client:
        said = [
            json.loads(
                (
                    await client.post(COMPLETIONS, json=question(text, tag), headers=SIGNED)
                ).json()["choices"][0]["message"]["content"]
            )["label"]
            for tag in ("documento-5f3c", "documento")
        ]

    assert TRUTH.label(3) == said[0] != said[1]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (Odd.PROSE, "stop"),
        (Odd.UNKNOWN_LABEL, "stop"),
        (Odd.TRUNCATED, "length"),
        (Odd.LONG_ANSWER, "stop"),
        (Odd.REFUSED, "stop"),
        (Odd.FAILED, "error"),
    ],
)
async def test_an_answer_may_be_none(odd, reason):
    async with asked(build_service(7)) as client:
        [choice] = (await ask(client, 3, odd))["choices"]

    said = choice["message"]["content"]
    assert reason == choice["finish_reason"]
    if odd is Odd.UNKNOWN_LABEL:
        assert json.loads(said)["label"] not in LABELS
    elif odd is Odd.LONG_ANSWER:
        assert len(said) > 1_000_000
    else:
        with pytest.raises((ValueError, TypeError)):
            json.loads(said)


async def test_it_refuses_as_the_real_one_does():
    async with asked(build_service(7)) as client:
        for headers, told, status in [
            ({}, question("x"), 401),
            ({"authorization": "Bearer other"}, question("x"), 401),
            (SIGNED, {"model": MODEL}, 400),
            (SIGNED, question("x", model="nobody/x"), 400),
            (SIGNED, question("x", model=AWAY), 503),
            (SIGNED, question("x", response_format={}), 400),
            (SIGNED, ["x"], 400),
        ]:
            answer = await client.post(COMPLETIONS, json=told, headers=headers)
            assert status == answer.status_code == answer.json()["error"]["code"]
        fallen = await client.post(
            COMPLETIONS, json=question("x", models=[AWAY, MODEL]), headers=SIGNED
        )
        listed = (await client.get("/api/v1/models")).json()["data"]

    assert MODEL == fallen.json()["model"]
    assert MODEL in {each["id"] for each in listed}


async def test_faults_are_on_demand_about_one_document_and_cost_nothing(tmp_path):
    there = build_service(7, log=tmp_path / "log")
    async with asked(there) as client:
        fault = {"trouble": "status", "status": 429, "retry_after": 7, "about": "DOC-00002"}
        await client.post("/_sandbox/faults", json=fault)
        met = [
            await client.post(
                COMPLETIONS, json=question("\n".join(TRUTH.text(n))), headers=SIGNED
            )
            for n in (1, 2, 2)
        ]

    assert [200, 429, 200] == [each.status_code for each in met]
    assert "7" == met[1].headers["retry-after"]
    assert [True, False, True] == [bool(line.get("paid")) for line in there.log.read(0)]
    assert {} == paid_twice(there.log.read(0))
    assert 3 == len(lines_of(tmp_path / "log"))


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines()


async def test_who_pays_twice_is_seen_and_chance_and_pace_go_by_the_seed():
    async def fates() -> list[tuple[Any, Any]]:
        there = build_service(7, faults=0.5, pace=1.0, clock=Hasty())
        for n in (0, 1, 2, 3, 4, 5, 6, 7, 0, 0):
            await post(there, question("\n".join(TRUTH.text(n))))
        return [(line["fault"], line["seconds"]) for line in there.log.read(0)]

    first = await fates()
    assert first == await fates()
    assert {None} < {fault for fault, _ in first}
    there = build_service(7)
    async with asked(there) as client:
        await ask(client, 0)
        await ask(client, 0)
    assert [2] == list(paid_twice(there.log.read(0)).values())
