"""A model's answer is one of the set, or an error that quotes nobody; whatever it says, it is accounted."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from retoma.apps.documents.clients.openrouter import Answer, Classifier, Rejected, Used
from retoma.apps.documents.model import Label, ProjectRules
from retoma.apps.documents.sandbox import (
    AWAY,
    ENDS,
    KEY,
    LABELS,
    MODEL,
    Odd,
    Papers,
    build_service,
    paid_twice,
)
from retoma.apps.documents.sandbox.openrouter import ERRORS
from retoma.engine.rules.errors import Permanent, Throttled, Transient, Unsure
from retoma.outbound import Outbound
from retoma.sandbox.box import Box
from retoma.secret import Secret

TRUTH = Papers(7)
RULES = ProjectRules(labels=tuple(Label(name, why) for name, why in LABELS.items()))
URL = "https://openrouter.test/api/v1"
SAID = {"label": "contrato", "confidence": 0.5, "justification": "Porque sim."}


def text(n: int, odd: Odd | None = None) -> str:
    return "\n".join(TRUTH.text(n, odd))


@dataclass
class Asking:
    """A classifier and what it was told about money."""

    classifier: Classifier
    used: list[Used] = field(default_factory=list)

    async def __call__(self, text: str, rules: ProjectRules = RULES) -> Answer:
        return await self.classifier.classify(text, rules, self.used.append)


@asynccontextmanager
async def asking(
    there: Any, *, key: str = KEY, models: tuple[str, ...] = (MODEL,)
) -> AsyncIterator[Asking]:
    async with Outbound(transport=httpx2.ASGITransport(app=there)) as out:
        yield Asking(Classifier(out, URL, Secret(key), models))


@asynccontextmanager
async def answering(told: Any, status: int = 200, **headers: str) -> AsyncIterator[Asking]:
    """Somebody who always says the same, whatever it is."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        return httpx2.Response(status, content=body, headers=headers)

    async with Outbound(transport=httpx2.MockTransport(answer)) as out:
        yield Asking(Classifier(out, URL, Secret(KEY), (MODEL,)))


def saying(content: Any, reason: str = "stop", **more: Any) -> dict[str, Any]:
    said = content if isinstance(content, str | None) else json.dumps(content)
    choice = {"finish_reason": reason, "message": {"role": "assistant", "content": said}}
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "cost": 0.0002}
    return {"model": MODEL, "choices": [choice], "usage": usage, **more}


async def arm(there: Box, **fault: Any) -> None:
    transport = httpx2.ASGITransport(app=there)
    async with httpx2.AsyncClient(transport=transport, base_url="http://box.test") as client:
        assert 204 == (await client.post("/_sandbox/faults", json=fault)).status_code


async def test_every_paper_gets_its_label_its_reason_and_its_cost():
    there = build_service(7)
    async with asking(there) as ask:
        for n in range(20):
            answer = await ask(text(n))
            assert TRUTH.label(n) == answer.label
            assert (0.93, MODEL, 0) == (answer.confidence, answer.model, answer.left_out)
            assert answer.justification
            used = Used(answer.model, answer.input_tokens, answer.output_tokens, answer.usd)
            assert used == ask.used[-1]
            assert used.input_tokens > 0
            assert (used.usd or 0) > 0

    assert {} == paid_twice(there.log.read(0))


@pytest.mark.parametrize(
    "odd", [Odd.PROSE, Odd.UNKNOWN_LABEL, Odd.TRUNCATED, Odd.LONG_ANSWER, Odd.REFUSED]
)
async def test_an_answer_of_no_use_is_an_error_that_may_pass_and_is_paid_for(odd):
    """C6, C8, bad input 24."""
    async with asking(build_service(7)) as ask:
        with pytest.raises(Transient) as met:
            await ask(text(3, odd))

    assert ENDS[odd] == met.value.code
    assert 1 == len(ask.used)
    for secret in ("PROCURADORIA", "receita", "porque sim", "Claro", KEY):
        assert secret not in f"{met.value!r} {met.value.__cause__!r}"


async def test_a_document_that_gives_orders_is_judged_and_not_obeyed():
    """H-30."""
    async with asking(build_service(7)) as ask:
        for n in range(20):
            assert TRUTH.label(n) == (await ask(text(n, Odd.INJECTION))).label


@pytest.mark.parametrize(
    "said",
    [
        {**SAID, "label": "Contrato"},
        {**SAID, "label": "contrato "},
        {**SAID, "label": ""},
    ],
)
async def test_a_label_is_one_of_the_set_to_the_letter(said):
    async with answering(saying(said)) as ask:
        with pytest.raises(Transient) as met:
            await ask("x")

    assert "unknown_label" == met.value.code


@pytest.mark.parametrize(
    "said",
    [
        {**SAID, "label": ["contrato"]},
        {**SAID, "confidence": 1.5},
        {**SAID, "confidence": "0.5"},
        {**SAID, "confidence": float("nan")},
        {**SAID, "justification": None},
        {**SAID, "tool": "delete_everything"},
        {"label": "contrato"},
        [SAID],
        "null",
        "",
        None,
        "```json\n" + json.dumps(SAID) + "\n```",
        "[" * 10_000,
    ],
)
async def test_an_answer_in_another_shape_is_none(said):
    async with answering(saying(said)) as ask:
        with pytest.raises(Transient) as met:
            await ask("x")

    assert "bad_answer" == met.value.code
    assert 1 == len(ask.used)


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({}, "bad_answer"),
        ([], "bad_answer"),
        ({"choices": []}, "bad_answer"),
        ({"choices": ["x"]}, "bad_answer"),
        ({"error": {"code": 502, "message": "x"}}, "server_error"),
        ({"error": {"code": "x"}}, "server_error"),
        ({"error": {"code": 429}}, "throttled"),
        (saying("", "error"), "truncated"),
        ({**saying(SAID, "length")}, "truncated"),
        (b"x" * (5 << 20), "bad_answer"),
    ],
)
async def test_trouble_may_come_with_a_good_status(told, code):
    async with answering(told) as ask:
        with pytest.raises(Transient) as met:
            await ask("x")

    assert code == met.value.code


async def test_what_an_answer_says_of_itself_is_taken_only_as_far_as_it_can_be_kept():
    odd = saying(
        {**SAID, "justification": "a\0b" + "c" * 5_000},
        model="m\0" * 300,
        usage={"prompt_tokens": -1, "completion_tokens": "9", "cost": -2},
    )
    async with answering(odd) as ask:
        answer = await ask("x")

    assert ("contrato", 0, 0, None) == (
        answer.label,
        answer.input_tokens,
        answer.output_tokens,
        answer.usd,
    )
    assert answer.justification.startswith("abc")
    assert len(answer.justification) <= 1_000
    assert len(answer.model) <= 200
    assert "\0" not in answer.model


@pytest.mark.parametrize(
    ("status", "raised", "code"),
    [
        (400, Rejected, "rejected"),
        (402, Rejected, "budget"),
        (403, Rejected, "rejected"),
        (404, Rejected, "config"),
        (429, Throttled, "throttled"),
        (500, Transient, "server_error"),
        (502, Transient, "server_error"),
        (503, Transient, "server_error"),
        (504, Unsure, "unsure"),
    ],
)
async def test_a_refusal_means_what_it_means_to_a_document_and_costs_nothing(
    status, raised, code
):
    there = build_service(7)
    await arm(there, trouble="status", status=status, retry_after=7)
    async with asking(there) as ask:
        with pytest.raises(raised) as met:
            await ask(text(3))

    assert code == met.value.code
    assert [] == ask.used
    if isinstance(met.value, Rejected):
        assert ERRORS[status] == met.value.words
    elif raised is not Unsure:
        assert 7 == met.value.retry_after
    assert KEY not in str(met.value)


@pytest.mark.parametrize(
    ("error", "status", "code", "words"),
    [
        ({"message": "that is not a valid model ID"}, 400, "rejected", "that is not a valid model ID"),
        ({"message": "x\0" + "é" * 400}, 400, "rejected", "x" + "é" * 299),
        ({"message": "bad: a secret of the person in it"}, 400, "rejected", ""),
        ({"message": 7}, 403, "rejected", ""),
        ({"code": 404, "message": "No endpoints found"}, 200, "config", "No endpoints found"),
        (b"<html>", 401, "unauthorized", ""),
    ],
)  # fmt: skip
async def test_the_words_of_the_service_are_kept_unless_they_quote_the_document(
    error, status, code, words
):
    told = error if isinstance(error, bytes) else {"error": error}
    async with answering(told, status) as ask:
        with pytest.raises(Rejected) as met:
            await ask("here is a secret of the person in it")

    assert (code, words) == (met.value.code, met.value.words)


async def test_a_document_that_was_moderated_is_refused_alone():
    metadata = {"reasons": ["violence"], "flagged_input": "here is…"}
    async with answering({"error": {"message": "flagged", "metadata": metadata}}, 403) as ask:
        with pytest.raises(Permanent) as met:
            await ask("x")

    assert ("refused", False) == (met.value.code, isinstance(met.value, Rejected))


async def test_a_wrong_key_is_told_apart_and_a_model_that_is_away_has_others():
    there = build_service(7)
    async with asking(there, key="sk-or-other") as ask:
        with pytest.raises(Permanent) as met:
            await ask(text(3))
    assert "unauthorized" == met.value.code

    async with asking(there, models=(AWAY,)) as ask:
        with pytest.raises(Transient):
            await ask(text(3))
    async with asking(there, models=(AWAY, MODEL)) as ask:
        assert MODEL == (await ask(text(3))).model
        assert (
            "sandbox/reader-2"
            == (
                await ask(text(3), ProjectRules(labels=RULES.labels, model="sandbox/reader-2"))
            ).model
        )


async def test_a_long_text_is_shown_at_its_ends_and_the_model_is_told_so():
    asked: list[Mapping[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        return httpx2.Response(200, json=saying(SAID))

    rules = ProjectRules(labels=RULES.labels, most_chars=900, instructions="Na dúvida, ofício.")
    async with Outbound(transport=httpx2.MockTransport(answer)) as out:
        classifier = Classifier(out, f"{URL}/", Secret(KEY), (MODEL,))
        long = await classifier.classify("".join(f"{n:04d}" for n in range(1_000)), rules)
        short = await classifier.classify("curto", RULES)

    assert (3_100, 0) == (long.left_out, short.left_out)
    system, user = (each["content"] for each in asked[0]["messages"])
    assert "3100 caracteres" in system
    assert "Na dúvida, ofício." in system
    assert all(f"- {name}: {why}" in system for name, why in LABELS.items())
    assert "000000010002" in user
    assert "09980999" in user
    assert "cortado" not in asked[1]["messages"][0]["content"]
    assert "models" not in asked[1]
    schema = asked[0]["response_format"]["json_schema"]
    assert schema["strict"]
    assert list(LABELS) == schema["schema"]["properties"]["label"]["enum"]
