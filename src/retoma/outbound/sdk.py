"""Somebody else's SDK, by our own way out: guarded, capped, and silent about the key.

Its import takes seconds, and happens beside the loop; its own retries are for whoever makes it to turn off.
"""

import asyncio
import importlib
from typing import Any, Final

import httpx2

from retoma.outbound.client import Outbound
from retoma.outbound.policy import Policy
from retoma.secret import Secret

SECRET: Final = frozenset({"x-api-key", "authorization"})
# What belongs to a connection, and so to our own way out.
HOP: Final = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "host"}
    | {"transfer-encoding"}
)


async def imported(name: str) -> Any:
    """A module that is slow to import; ImportError where it is not installed."""
    return await asyncio.to_thread(importlib.import_module, name)


def client_for(out: Outbound, policy: Policy) -> httpx2.AsyncClient:
    """What an SDK sends its requests with."""
    return httpx2.AsyncClient(transport=_Way(out, policy), trust_env=False)


class _Way(httpx2.AsyncBaseTransport):
    def __init__(self, out: Outbound, policy: Policy) -> None:
        self._out = out
        self._policy = policy

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers: dict[str, str | Secret] = {
            name: Secret(value) if name in SECRET else value
            for name, value in request.headers.items()
            if name not in HOP
        }
        answer = await self._out.request(
            self._policy,
            request.method,
            str(request.url),
            headers=headers,
            content=await request.aread(),
            accept=range(300, 600),
        )
        told = {name: value for name, value in answer.headers.items() if name not in HOP}
        return httpx2.Response(answer.status, headers=told, content=answer.body)
