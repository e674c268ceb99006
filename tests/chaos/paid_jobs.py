"""Stories that pay for each step; every call is told apart by the number the other side gave it."""

import asyncio
import http.client
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from retoma import Context, Retoma, Retry, Transient

PAID_PORT = "paid.port"
PROVIDER = "acme"
RETRY = Retry(attempts=20, base=0.01, cap=0.05)


def register(app: Retoma, folder: Path) -> None:
    @app.job(name="purchase", retry=RETRY, application="shop")
    async def purchase(ctx: Context, payload: dict[str, Any]) -> None:
        async def buy(step: str) -> int:
            told = {"job": ctx.job, "epoch": ctx.epoch, "step": step}
            answer = await asyncio.to_thread(_asked, folder, told)
            number = int(answer["call"])
            ctx.cost(provider=PROVIDER, model=str(number), usd=answer["price"], calls=1)
            if not answer["good"]:
                raise Transient("paid, and worth nothing")
            return number

        for n in range(payload["steps"]):
            await ctx.step(f"buy {n}", buy, f"buy {n}", pays=PROVIDER)


def _asked(folder: Path, told: dict[str, Any]) -> Any:
    port = int((folder / PAID_PORT).read_text())
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as line:
        line.request("POST", "/", json.dumps(told))
        return json.loads(line.getresponse().read())
