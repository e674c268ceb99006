"""OpenRouter's chat completions, as far as a classification needs them: one question, one JSON answer.

The model reads what stands between the first tag of the user's message and the tag that closes it, and
takes the label whose words it finds most often. What stands after the closing tag it takes for an order,
as models do: whoever lets a document close its own tag gets the label the document asks for.
"""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from retoma.apps.documents.sandbox.papers import CODE, WORDS, Odd
from retoma.sandbox.box import SiteRequest
from retoma.sandbox.faults import Fault

KEY: Final = "sk-or-v1-sandbox"
MODEL: Final = "sandbox/reader-1"
# What a million tokens cost, in and out. The last is always away: who names it needs another.
MODELS: Final[Mapping[str, tuple[float, float]]] = {
    MODEL: (0.10, 0.40),
    "sandbox/reader-2": (0.50, 1.50),
    "sandbox/away": (0.10, 0.40),
}
AWAY: Final = "sandbox/away"
ERRORS: Final[Mapping[int, str]] = {
    400: "Bad request",
    401: "No auth credentials found",
    402: "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
    403: "Your input was flagged by moderation",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timed out",
    413: "Payload too large",
    429: "Rate limit exceeded",
    502: "Provider returned error",
    503: "No available model provider meets your routing requirements",
}
TAGGED: Final = re.compile(r"<([\w-]{3,80})>\n(.*)", re.DOTALL)
ORDER: Final = re.compile(r'responda "([^"]{1,100})"', re.IGNORECASE)
A_WORD: Final = re.compile(r"\w{4,}")
A_TOKEN: Final = 4  # characters, about
MILLION: Final = 1_000_000
LONG: Final = 1 << 20  # characters of an answer that never stops


class _Refused(Exception):
    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status


def build_openrouter(seed: int = 1) -> Starlette:
    turns = _Turns(seed)

    async def completions(request: Request) -> Response:
        try:
            _authorised(request.headers)
            told = _checked(await request.body())
            model = _chosen(told)
        except _Refused as no:
            return _error(no.status, str(no))
        return JSONResponse(_answer(told, model, turns))

    async def models(_: Request) -> Response:
        return JSONResponse({"data": [_listed(id_) for id_ in MODELS]})

    async def endpoints(request: Request) -> Response:
        model = request.path_params["model"]
        if model not in MODELS:
            return _error(404, f"{model} is not a valid model ID")
        return JSONResponse({"data": _listed(model)})

    async def key(request: Request) -> Response:
        try:
            _authorised(request.headers)
        except _Refused as no:
            return _error(no.status, str(no))
        return JSONResponse({"data": {"label": "sandbox", "limit": None}})

    async def refused(_: Request, no: Exception) -> Response:
        return _error(no.status_code if isinstance(no, HTTPException) else 500)

    return Starlette(
        routes=[
            Route("/api/v1/chat/completions", completions, methods=["POST"]),
            Route("/api/v1/models", models),
            Route("/api/v1/models/{model:path}/endpoints", endpoints),
            Route("/api/v1/key", key),
        ],
        exception_handlers={HTTPException: refused},
    )


def refusal(fault: Fault) -> Response:
    return _error(fault.status)


def notes(asked: SiteRequest) -> Mapping[str, Any]:
    """Which document was asked about; never the key, never its text."""
    document, _ = _quoted(_said(asked.body))
    marked = CODE.search(document)
    return {
        "input": fingerprint(document),
        "item": None if marked is None else int(marked[1]),
        "odd": None if marked is None else marked[2],
        "caller": asked.headers.get("user-agent"),
    }


def fingerprint(text: str) -> str:
    """By which a log knows the same words again."""
    return sha256(text.strip().encode()).hexdigest()[:16]


class _Turns:
    """Ids as the real ones are written, the same for the same seed and order."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.turn = 0

    def next(self) -> str:
        self.turn += 1
        digest = sha256(f"{self._seed}:{self.turn}".encode()).hexdigest()
        return f"gen-{1_700_000_000 + self.turn}-{digest[:20]}"


# — what is asked —


def _authorised(headers: Mapping[str, str]) -> None:
    key = headers.get("authorization", "").removeprefix("Bearer ")
    if not key:
        raise _Refused(401)
    if key != KEY:
        raise _Refused(401, "User not found.")


def _checked(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        raise _Refused(400, "Invalid JSON") from None
    if not isinstance(told, dict) or not _are_messages(told.get("messages")):
        raise _Refused(400, "messages: Required")
    if told.get("stream"):
        raise _Refused(400, "streams do not come out of this box")
    if not _labels(told):
        raise _Refused(400, "response_format: a json_schema with an enum of labels is needed")
    return told


def _are_messages(them: Any) -> bool:
    return (
        isinstance(them, list)
        and bool(them)
        and all(
            isinstance(each, dict)
            and each.get("role") in ("system", "user", "assistant")
            and isinstance(each.get("content"), str)
            for each in them
        )
    )


def _labels(told: Mapping[str, Any]) -> Sequence[str]:
    try:
        schema = told["response_format"]["json_schema"]["schema"]
        return [str(each) for each in schema["properties"]["label"]["enum"]]
    except (KeyError, TypeError):
        return ()


def _chosen(told: Mapping[str, Any]) -> str:
    """The first of those named that is there."""
    named = told.get("models") or [told.get("model")]
    if not isinstance(named, list) or not all(each in MODELS for each in named):
        raise _Refused(400, "that is not a valid model ID")
    there = [each for each in named if each != AWAY]
    if not there:
        raise _Refused(503)
    return str(there[0])


def _said(body: bytes) -> str:
    """The last words of the user, as far as they can be read."""
    try:
        messages = json.loads(body)["messages"]
        return str([each["content"] for each in messages if each["role"] == "user"][-1])
    except (ValueError, KeyError, IndexError, TypeError):
        return ""


def _quoted(said: str) -> tuple[str, str]:
    """What stands between the tags, and what comes after them."""
    found = TAGGED.search(said)
    if found is None:
        return said, said
    inside, _, after = found[2].partition(f"</{found[1]}>")
    return inside, after


# — what is answered —


def _answer(told: Mapping[str, Any], model: str, turns: _Turns) -> dict[str, Any]:
    document, after = _quoted(_said(json.dumps(told).encode()))
    labels = _labels(told)
    marked = CODE.search(document)
    odd = Odd(marked[2]) if marked and marked[2] in set(Odd) else None
    order = ORDER.search(after)
    label = order[1] if order and order[1] in labels else _label(document, labels)
    choice = _choice(odd, label)
    tokens = (
        len(json.dumps(told)) // A_TOKEN,
        8 + len(choice["message"]["content"] or "") // A_TOKEN,
    )
    id_ = turns.next()
    return {
        "id": id_,
        "provider": "Sandbox",
        "model": model,
        "object": "chat.completion",
        "created": 1_700_000_000 + turns.turn,
        "choices": [choice],
        "usage": _usage(model, *tokens),
    }


def _label(document: str, labels: Sequence[str]) -> str:
    words = A_WORD.findall(document.casefold())

    def found(label: str) -> int:
        own = set(WORDS.get(label, ())) or set(A_WORD.findall(label.casefold()))
        return sum(word in own for word in words)

    return max(labels, key=found)


def _choice(odd: Odd | None, label: str) -> dict[str, Any]:
    right = {"label": label, "confidence": 0.93, "justification": f"Termos de {label}."}
    said: str | None = json.dumps(right, ensure_ascii=False)
    reason, more = "stop", dict[str, Any]()
    match odd:
        case Odd.PROSE:
            said = f"Claro! Este documento parece ser um(a) {label}, porque fala disso."
        case Odd.UNKNOWN_LABEL:
            said = json.dumps({**right, "label": "receita de bolo"})
        case Odd.TRUNCATED:
            said, reason = json.dumps(right)[:30], "length"
        case Odd.LONG_ANSWER:
            said = json.dumps({**right, "justification": "porque sim " * (LONG // 11)})
        case Odd.REFUSED:
            said, more = None, {"refusal": "Não posso ajudar com isso."}
        case Odd.FAILED:
            said, reason = "", "error"
        case _:
            pass
    choice = {
        "logprobs": None,
        "finish_reason": reason,
        "native_finish_reason": reason,
        "index": 0,
        "message": {"role": "assistant", "content": said, "refusal": None, **more},
    }
    if reason == "error":
        choice["error"] = {"code": 502, "message": ERRORS[502]}
    return choice


def _usage(model: str, asked: int, said: int) -> dict[str, Any]:
    price = MODELS[model]
    return {
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
        "cost": (asked * price[0] + said * price[1]) / MILLION,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _listed(id_: str) -> dict[str, Any]:
    asked, said = MODELS[id_]
    return {
        "id": id_,
        "name": id_,
        "context_length": 128_000,
        "pricing": {
            "prompt": f"{asked / MILLION:.10f}",
            "completion": f"{said / MILLION:.10f}",
        },
        "supported_parameters": ["response_format", "structured_outputs", "max_tokens"],
    }


def _error(status: int, message: str = "") -> Response:
    usual = ERRORS.get(status, f"Something went wrong ({status}).")
    error: dict[str, Any] = {"code": status, "message": message or usual}
    if status in (429, 502):
        error["metadata"] = {"provider_name": "Sandbox", "raw": "upstream"}
    return JSONResponse({"error": error, "user_id": "user_sandbox"}, status)
