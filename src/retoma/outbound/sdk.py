"""Run a vendor's SDK over our outbound client, with its checks, caps and secret handling.

The SDK is imported in a thread, because that takes seconds. The caller must turn off the SDK's own retries.
"""

import asyncio
import importlib
from typing import Any, Final

import httpx2

from retoma.outbound.client import Outbound
from retoma.outbound.policy import Policy
from retoma.secret import Secret

SECRET: Final = frozenset({"x-api-key", "authorization"})
# Headers of the connection, which our client sets itself.
HOP: Final = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "host"}
    | {"transfer-encoding"}
)


async def import_module(name: str) -> Any:
    """Import a slow module in a thread; ImportError if it is not installed."""
    return await asyncio.to_thread(importlib.import_module, name)


def client_for(out: Outbound, policy: Policy) -> httpx2.AsyncClient:
    """Make the httpx2 client to hand to an SDK."""
    return httpx2.AsyncClient(transport=_OutboundTransport(out, policy), trust_env=False)


class _OutboundTransport(httpx2.AsyncBaseTransport):
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
        headers_left = {
            name: value for name, value in answer.headers.items() if name not in HOP
        }
        return httpx2.Response(answer.status, headers=headers_left, content=answer.body)
