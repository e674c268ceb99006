"""Voyage's `/v1/embeddings` and Cohere's `/v2/embed`, each below a path of its own: `/voyage`, `/cohere`.

A vector depends on what the text is for, as theirs do. The marks of the other service work here too.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from retoma.apps.embeddings.sandbox.openai import (
    MODELS,
    Odd,
    RequestRefused,
    authorise,
    error_answer,
    odd_of,
    rows_of,
    texts_of,
    tokens_of,
)

MOST_TEXTS: Final = {"voyage": 1_000, "cohere": 96}
INPUT_TYPES: Final = {
    "voyage": (None, "document", "query"),
    "cohere": ("search_document", "search_query", "classification", "clustering"),
}
SIZES: Final = (256, 512, 1_024, 2_048)  # that both can shorten a vector to


def routes() -> list[Route]:
    return [
        Route("/voyage/v1/embeddings", _voyage, methods=["POST"]),
        Route("/cohere/v2/embed", _cohere, methods=["POST"]),
    ]


async def _voyage(request: Request) -> Response:
    try:
        told, texts, dims = _asked(request.headers, await request.body(), "voyage")
    except RequestRefused as no:
        return error_answer(no.status, str(no), no.code)
    data = [
        row
        for index, text in enumerate(texts)
        for row in rows_of(index, text, dims, purpose=told.get("input_type"))
    ]
    tokens = sum(map(tokens_of, texts))
    usage = {"total_tokens": tokens}
    return _json({"object": "list", "data": data, "model": told["model"], "usage": usage})


async def _cohere(request: Request) -> Response:
    try:
        told, texts, dims = _asked(request.headers, await request.body(), "cohere")
    except RequestRefused as no:
        return error_answer(no.status, str(no), no.code)
    if told.get("embedding_types") != ["float"]:
        return error_answer(400, "embedding_types: float")
    rows = [
        row["embedding"]
        for index, text in enumerate(texts)
        for row in rows_of(index, text, dims, purpose=told["input_type"])
    ]
    billed = {"billed_units": {"input_tokens": sum(map(tokens_of, texts))}}
    meta = {"api_version": {"version": "2"}, **billed}
    return _json({"id": "sandbox", "embeddings": {"float": rows}, "texts": texts, "meta": meta})


def _asked(
    headers: Mapping[str, str], body: bytes, service: str
) -> tuple[dict[str, Any], list[str], int]:
    """What is asked, its texts, and how many numbers a vector has."""
    authorise(headers)
    try:
        told = json.loads(body)
    except ValueError:
        raise RequestRefused(400, "invalid JSON") from None
    if not isinstance(told, dict) or told.get("model") not in MODELS:
        raise RequestRefused(404)
    if told.get("input_type") not in INPUT_TYPES[service]:
        raise RequestRefused(400, "input_type is not one of ours")
    texts = texts_of(told)
    if len(texts) > MOST_TEXTS[service]:
        raise RequestRefused(400, "too many texts")
    if any(odd_of(text) is Odd.REFUSED for text in texts):
        raise RequestRefused(400, "Your input was flagged.")
    dims = told.get("output_dimension", MODELS[told["model"]][0])
    if dims not in (*SIZES, MODELS[told["model"]][0]):
        raise RequestRefused(400, "output_dimension is not one of ours")
    return told, texts, dims


def _json(told: Mapping[str, Any]) -> Response:
    """Not a JSONResponse, which writes no NaN; services in Python do."""
    return Response(json.dumps(told), media_type="application/json")
