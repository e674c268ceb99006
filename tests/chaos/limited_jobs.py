"""Handlers that call a service which allows only so many calls a second, and says so."""

import asyncio
import http.client
import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

from retoma import Context, Retoma, Retry, Transient

LIMITED_PORT = "limited.port"
RATE = "limited"
REFUSED = 429
RETRY = Retry(attempts=50, base=0.01, cap=0.05)


def register(app: Retoma, folder: Path) -> None:
    @app.job(name="ask_limited", retry=RETRY)
    async def ask_limited(ctx: Context, payload: Any) -> None:
        async with ctx.rate(RATE, adaptive=True):
            await asyncio.to_thread(_asked, folder)


def _asked(folder: Path) -> None:
    port = int((folder / LIMITED_PORT).read_text())
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as line:
        line.request("POST", "/", json.dumps({"pid": os.getpid()}))
        answer = line.getresponse()
        if answer.status == REFUSED:
            asked = answer.getheader("retry-after")
            raise Transient("429", retry_after=float(asked) if asked else None)
