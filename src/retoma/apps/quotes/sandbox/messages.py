"""The Messages API of Anthropic, as far as an analysis needs it: one request, one use of a tool.

It reads the description in the user's words and takes the tool that fits: `vehicle` for a car,
`search_plan` for anything else, with what the tool's schema knows of.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from retoma.apps.quotes.sandbox.catalogue import Catalogue, Vehicle
from retoma.apps.quotes.sandbox.goods import Odd, Product, read_code
from retoma.sandbox.box import SiteRequest
from retoma.sandbox.faults import Fault

KEY: Final = "sk-ant-sandbox"
ERRORS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("invalid_request_error", "Bad request."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key may not use this."),
    404: ("not_found_error", "Not found"),
    405: ("invalid_request_error", "Method Not Allowed"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}
A_TOKEN: Final = 4  # characters, about


class _Refused(Exception):
    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status


def build_messages(catalogue: Catalogue) -> Starlette:
    turns = _Turns(catalogue.seed)

    async def messages(request: Request) -> Response:
        try:
            _authorised(request.headers)
            told = _checked(await request.body())
        except _Refused as no:
            return _error(no.status, str(no), turns.next("req"))
        answer = _answer(catalogue, told, turns)
        return JSONResponse(answer, headers={"request-id": turns.next("req")})

    async def known(request: Request) -> Response:
        """Of a model: those that answer here are all there are."""
        model = request.path_params["model"]
        try:
            _authorised(request.headers)
        except _Refused as no:
            return _error(no.status, str(no), turns.next("req"))
        if not model.startswith("claude"):
            return _error(404, f"model: {model}", turns.next("req"))
        return JSONResponse({"type": "model", "id": model})

    async def refused(_: Request, no: Exception) -> Response:
        status = no.status_code if isinstance(no, HTTPException) else 500
        return _error(status, "", turns.next("req"))

    return Starlette(
        routes=[
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/models/{model}", known),
        ],
        exception_handlers={HTTPException: refused},
    )


def refusal(fault: Fault) -> Response:
    return _error(fault.status, "", f"req_{fault.status:024d}")


def notes(asked: SiteRequest) -> Mapping[str, Any]:
    """Whose description was to be analysed; never the key."""
    text = _said(asked.body)
    marked = read_code(text)
    return {
        "input": fingerprint(text),
        "item": None if marked is None else marked[1],
        "caller": asked.headers.get("user-agent"),
        "idempotency": asked.headers.get("idempotency-key"),
    }


def fingerprint(text: str) -> str:
    """By which a log knows the same words again."""
    return sha256(text.strip().encode()).hexdigest()[:16]


class _Turns:
    """Ids as the real ones are written, the same for the same seed and order."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._turn = 0

    def next(self, kind: str) -> str:
        self._turn += 1
        return f"{kind}_01{sha256(f'{self._seed}:{self._turn}'.encode()).hexdigest()[:22]}"


# — what is asked —


def _authorised(headers: Mapping[str, str]) -> None:
    if "anthropic-version" not in headers:
        raise _Refused(400, "anthropic-version: header is required")
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not key:
        raise _Refused(401, "x-api-key header is required")
    if key != KEY:
        raise _Refused(401)


def _checked(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        raise _Refused(400, "The request body is not valid JSON") from None
    problems = _problems(told) if isinstance(told, dict) else ["Input should be an object"]
    if problems:
        raise _Refused(400, problems[0])
    return dict(told)


def _problems(told: Mapping[str, Any]) -> Sequence[str]:
    needed = ("model", "max_tokens", "messages")
    missing = [f"{name}: Field required" for name in needed if name not in told]
    if missing:
        return missing
    tokens, messages, tools = told["max_tokens"], told["messages"], told.get("tools", [])
    checks = (
        ("model: Input should be a valid string", isinstance(told["model"], str)),
        ("max_tokens: Input should be a valid integer", type(tokens) is int),
        (
            "max_tokens: Input should be greater than or equal to 1",
            type(tokens) is not int or tokens >= 1,
        ),
        ("messages: at least one message is required", bool(messages)),
        ("messages: Input should be a list of messages", _are_messages(messages)),
        ("tools: each has a name and an input_schema", _are_tools(tools)),
        ("tool_choice: tool not found in tools", _is_choice(told.get("tool_choice"), tools)),
        ("stream: streams do not come out of this box", not told.get("stream")),
    )
    return [problem for problem, well in checks if not well]


def _are_messages(them: Any) -> bool:
    return isinstance(them, list) and all(
        isinstance(each, dict)
        and each.get("role") in ("user", "assistant")
        and isinstance(each.get("content"), str | list)
        for each in them
    )


def _are_tools(them: Any) -> bool:
    return isinstance(them, list) and all(
        isinstance(each, dict)
        and isinstance(each.get("name"), str)
        and isinstance(each.get("input_schema"), dict)
        for each in them
    )


def _is_choice(choice: Any, tools: Any) -> bool:
    if choice is None or not _are_tools(tools):
        return True
    if not isinstance(choice, dict) or choice.get("type") not in (
        "auto",
        "any",
        "tool",
        "none",
    ):
        return False
    return choice["type"] != "tool" or choice.get("name") in {each["name"] for each in tools}


def _said(body: bytes) -> str:
    """The last words of the user, as far as they can be read."""
    try:
        messages = json.loads(body)["messages"]
        content = [each["content"] for each in messages if each["role"] == "user"][-1]
        if isinstance(content, str):
            return content
        return "\n".join(each["text"] for each in content if each.get("type") == "text")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return ""


# — what is answered —


def _answer(catalogue: Catalogue, told: Mapping[str, Any], turns: _Turns) -> dict[str, Any]:
    body = json.dumps(told)
    meant = catalogue.read(_said(body.encode()))
    content, reason = _content(meant, told, turns)
    return {
        "id": turns.next("msg"),
        "type": "message",
        "role": "assistant",
        "model": told["model"],
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": len(body) // A_TOKEN,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 12 + len(json.dumps(content)) // A_TOKEN,
        },
    }


def _content(
    meant: Product | Vehicle, told: Mapping[str, Any], turns: _Turns
) -> tuple[list[dict[str, Any]], str]:
    tool = _tool(meant, told)
    if meant.odd is Odd.REFUSED:
        return [], "refusal"
    if tool is None or meant.odd is Odd.NO_TOOL:
        return [{"type": "text", "text": "Não sei dizer o que é isso."}], "end_turn"
    known = tool["input_schema"].get("properties")
    given = _input(meant, tool["name"])
    used = {
        "type": "tool_use",
        "id": turns.next("toolu"),
        "name": tool["name"],
        "input": {k: v for k, v in given.items() if known is None or k in known},
    }
    return _spoilt(used, meant.odd)


def _tool(meant: Product | Vehicle, told: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The one that was told, else the one that fits, else any that must be; None: none of them."""
    choice = told.get("tool_choice") or {"type": "auto"}
    fits = "vehicle" if isinstance(meant, Vehicle) else "search_plan"
    wanted = {"tool": choice.get("name"), "none": None}.get(choice["type"], fits)
    tools = told.get("tools", [])
    any_ = tools[0] if tools and choice["type"] == "any" else None
    return next((each for each in tools if each["name"] == wanted), any_)


def _input(meant: Product | Vehicle, tool: str) -> Mapping[str, Any]:
    match meant, tool:
        case Product(), "search_plan":
            return meant.plan
        case Vehicle(), "vehicle":
            return meant.asked
        case Product(), _:
            return {"brand": meant.brand, "model": meant.line}
        case Vehicle(), _:
            asked = meant.asked
            return {
                "query": f"{asked['brand']} {asked['model']} {asked['year']}",
                "category": "veículos",
                "brand": asked["brand"],
                "must_have": [],
                "must_not": [],
            }


def _spoilt(used: dict[str, Any], odd: Odd | None) -> tuple[list[dict[str, Any]], str]:
    match odd:
        case Odd.NOT_JSON:
            text = "```json\n{'query': notebook, must_have: [\n```"
            return [{"type": "text", "text": text}], "end_turn"
        case Odd.WRONG_SHAPE:
            wrong = {"query": 42, "must_have": "tudo", "colour": None}
            return [{**used, "input": wrong}], "tool_use"
        case Odd.CUT_SHORT:
            return [{**used, "input": {}}], "max_tokens"
        case _:
            return [used], "tool_use"


def _error(status: int, message: str, request: str) -> Response:
    kind, usual = ERRORS.get(status, ERRORS[500] if status >= 500 else ERRORS[400])
    error = {"type": kind, "message": message or usual}
    return JSONResponse(
        {"type": "error", "error": error, "request_id": request},
        status,
        {"request-id": request},
    )
