"""OpenAI's `/v1/embeddings`, as far as it needs: many texts in one request, a row for each.

A vector says which words a text has. A text may carry a mark, by which this service goes wrong about that
text alone (`[odd:nan]`), or about the whole request it comes in (`[odd:refused]`).
"""

import base64
import json
import re
import struct
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from math import sqrt
from random import Random
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from retoma.sandbox.box import SiteRequest
from retoma.sandbox.faults import Fault

KEY: Final = "sk-sandbox"
MODEL: Final = "sandbox-embed-1"
DIMS: Final = 64
# How many numbers a vector of each has, and what a million tokens cost.
MODELS: Final[Mapping[str, tuple[int, float]]] = {
    MODEL: (DIMS, 0.02),
    "sandbox-embed-2": (128, 0.13),
}
MOST_TEXTS: Final = 2_048
MOST_TOKENS: Final = 8_192  # of one text
A_TOKEN: Final = 4  # characters, about
MILLION: Final = 1_000_000
WORD: Final = re.compile(r"\w+")
MARK: Final = re.compile(r"\[odd:([a-z0-9_]+)\]")
ERRORS: Final[Mapping[int, tuple[str, str | None, str]]] = {
    400: ("invalid_request_error", None, "Invalid request."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached. Please try again."),
}
SERVER: Final = ("server_error", None, "The server had an error while processing your request.")


class Odd(StrEnum):
    """What becomes of a text that carries the mark of it."""

    WRONG_DIMS = "wrong_dims"  # its vector is one number short
    NAN = "nan"  # its vector has no number where one should be
    INFINITE = "infinite"
    ZERO = "zero"  # its vector points nowhere
    MISSING = "missing"  # there is no row for it
    TWICE = "twice"  # there are two rows for it, and they differ
    SHUFFLED = "shuffled"  # the rows of its request come in another order, each with its index
    BASE64 = "base64"  # its vector is packed, though nobody asked for that
    REFUSED = "refused"  # its request is refused, for all texts in it
    QUOTA = "quota"  # the money is used up, which is said with a 429


class RequestRefused(Exception):
    def __init__(self, status: int, message: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def marked(text: str, odd: Odd) -> str:
    """A text about which this service goes wrong."""
    return f"{text} [odd:{odd}]"


def build_openai(seed: int = 1) -> Starlette:
    turns = [0]

    async def embeddings(request: Request) -> Response:
        try:
            authorise(request.headers)
            told = _checked(await request.body())
        except RequestRefused as no:
            return error_answer(no.status, str(no), no.code)
        turns[0] += 1
        answer = _answer(told, Random(f"{seed}:{turns[0]}"))  # noqa: S311 — a world, not a secret
        # Not a JSONResponse, which writes no NaN; services in Python do.
        return Response(json.dumps(answer), media_type="application/json")

    async def models(_: Request) -> Response:
        data = [{"id": id_, "object": "model", "owned_by": "sandbox"} for id_ in MODELS]
        return JSONResponse({"object": "list", "data": data})

    async def model(request: Request) -> Response:
        try:
            authorise(request.headers)
        except RequestRefused as no:
            return error_answer(no.status, str(no), no.code)
        name = request.path_params["model"]
        if name not in MODELS:
            return error_answer(404, f"The model '{name}' does not exist")
        return JSONResponse({"id": name, "object": "model"})

    async def refused(_: Request, no: Exception) -> Response:
        return error_answer(no.status_code if isinstance(no, HTTPException) else 500)

    return Starlette(
        routes=[
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{model}", model),
        ],
        exception_handlers={HTTPException: refused},
    )


def refusal(fault: Fault) -> Response:
    return error_answer(fault.status)


def notes(asked: SiteRequest) -> Mapping[str, Any]:
    """Which texts were asked for, each by its fingerprint; never the key, never the texts."""
    try:
        told = json.loads(asked.body)
        texts = texts_of(told)
        model = told.get("model")
    except (ValueError, RequestRefused, AttributeError):
        texts, model = [], None
    return {
        "model": model,
        "texts": len(texts),
        "inputs": [fingerprint(text) for text in texts],
        "caller": asked.headers.get("user-agent"),
    }


def fingerprint(text: str) -> str:
    """By which a log knows the same words again."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# — what is asked —


def authorise(headers: Mapping[str, str]) -> None:
    if headers.get("authorization") != f"Bearer {KEY}":
        raise RequestRefused(401)


def _checked(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        raise RequestRefused(400, "We could not parse the JSON body of your request.") from None
    if not isinstance(told, dict) or told.get("model") not in MODELS:
        raise RequestRefused(404)
    if told.get("encoding_format", "float") not in ("float", "base64"):
        raise RequestRefused(400, "encoding_format: float or base64")
    if told.get("dimensions", MODELS[told["model"]][0]) != MODELS[told["model"]][0]:
        raise RequestRefused(400, "This model does not support specifying dimensions.")
    odd = {odd_of(text) for text in texts_of(told)}
    if Odd.QUOTA in odd:
        raise RequestRefused(429, "You exceeded your current quota.", "insufficient_quota")
    if Odd.REFUSED in odd:
        raise RequestRefused(400, "Your input was flagged.")
    return told


def texts_of(told: Mapping[str, Any]) -> list[str]:
    given = told.get("input", told.get("texts"))
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 1 <= len(texts) <= MOST_TEXTS:
        raise RequestRefused(400, "'$.input' is invalid.")
    if not all(isinstance(text, str) and text for text in texts):
        raise RequestRefused(400, "'$.input' is invalid.")
    if any(len(text) > A_TOKEN * MOST_TOKENS for text in texts):
        raise RequestRefused(
            400, f"This model's maximum context length is {MOST_TOKENS} tokens."
        )
    return texts


def odd_of(text: str) -> Odd | None:
    found = MARK.search(text)
    return Odd(found[1]) if found and found[1] in set(Odd) else None


# — what is answered —


def _answer(told: Mapping[str, Any], chance: Random) -> dict[str, Any]:
    texts = texts_of(told)
    dims, price = MODELS[told["model"]]
    packed = told.get("encoding_format") == "base64"
    rows = [
        row
        for index, text in enumerate(texts)
        for row in rows_of(index, text, dims, packed=packed)
    ]
    if any(odd_of(text) is Odd.SHUFFLED for text in texts):
        chance.shuffle(rows)
    tokens = sum(tokens_of(text) for text in texts)
    usage = {
        "prompt_tokens": tokens,
        "total_tokens": tokens,
        "cost": tokens * price / MILLION,  # OpenAI does not say it; others of its shape do
    }
    return {"object": "list", "data": rows, "model": told["model"], "usage": usage}


def rows_of(
    index: int, text: str, dims: int, *, packed: bool = False, purpose: str | None = None
) -> list[dict[str, Any]]:
    """`purpose`: what the text is for, where a service puts that before it."""
    vector = _vector(text if purpose is None else f"{purpose} {text}", dims)
    odd = odd_of(text)
    rows: list[Sequence[float] | str] = [vector]
    match odd:
        case Odd.WRONG_DIMS:
            rows = [vector[:-1]]
        case Odd.NAN:
            rows = [[float("nan"), *vector[1:]]]
        case Odd.INFINITE:
            rows = [[float("inf"), *vector[1:]]]
        case Odd.ZERO:
            rows = [[0.0] * dims]
        case Odd.MISSING:
            rows = []
        case Odd.TWICE:
            rows = [vector, vector[::-1]]
        case Odd.BASE64:
            rows = [_packed(vector)]
        case _:
            pass
    if packed:
        rows = [row if isinstance(row, str) else _packed(row) for row in rows]
    return [{"object": "embedding", "index": index, "embedding": row} for row in rows]


def _vector(text: str, dims: int) -> list[float]:
    """Of length one, as OpenAI's are."""
    sums = [0.0] * dims
    for word in WORD.findall(text.casefold()) or [text]:
        sums[int.from_bytes(sha256(word.encode()).digest()[:4], "big") % dims] += 1
    length = sqrt(sum(each * each for each in sums))
    return [round(each / length, 8) for each in sums]


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def tokens_of(text: str) -> int:
    return 1 + len(text) // A_TOKEN


def error_answer(status: int, message: str = "", code: str | None = None) -> Response:
    kind, usual_code, usual = ERRORS.get(status, SERVER)
    error = {
        "message": message or usual,
        "type": code or kind,
        "param": None,
        "code": code or usual_code,
    }
    return JSONResponse({"error": error}, status)
