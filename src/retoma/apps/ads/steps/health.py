"""A health test: one real request to a worker, to a writer, or through a proxy.

That it fails is its result, not a failure of the job: time, latency and error are kept beside what
was tested.
"""

from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from retoma.apps.ads import store
from retoma.apps.ads.clients import WriterClient
from retoma.apps.ads.model import Proxy
from retoma.apps.ads.steps.hands import Hands
from retoma.apps.ads.store import Sort
from retoma.engine.handlers.context import Context
from retoma.engine.rules.errors import BadInput, NotFound, Permanent, Transient
from retoma.engine.rules.outcome import Skip
from retoma.outbound import Outbound, Policy
from retoma.outbound import Proxy as Through
from retoma.words import say

DEADLINE: Final = 20.0  # seconds for a request through a proxy
MOST: Final = 1 << 20  # bytes of its answer
PORT: Final = 80  # of a proxy that names none
SCHEDULE: Final = "schedule"


@dataclass(frozen=True, slots=True)
class Health:
    """The story of a health test; without anything named, of one for all there is."""

    hands: Hands

    async def tell(self, ctx: Context, what: dict[str, str] | None) -> Any:
        if what is None:
            return await ctx.write("all", _ask_all)
        sort, id_ = Sort(what["sort"]), what["id"]
        clock = self.hands.tools.retoma.clock
        began = clock.now()
        try:
            error = await self._asked(sort, id_)
        except NotFound as gone:
            return Skip(str(gone))
        except (Transient, Permanent, BadInput) as failed:
            error = _said(failed)
        ms = round((clock.now() - began) * 1000)
        await ctx.write("tested", store.keep_test, sort, id_, ms, error)
        return {"ok": error is None, "ms": ms, "error": error}

    async def _asked(self, sort: Sort, id_: str) -> str | None:
        """What is wrong with its answer, if it answers."""
        match sort:
            case Sort.WORKERS:
                client = await self.hands.worker_client(id_)
                said = await client.session_status()
                return None if said else say("the answer has no status")
            case Sort.WRITERS:
                writer = WriterClient(self.hands.tools.out, await self.hands.writer(id_))
                return None if await writer.healthy() else say("it says that it is not healthy")
            case Sort.PROXIES:
                url = await self.hands.knob("proxy_test_url")
                await through(self.hands.tools.out, await self.hands.proxy(id_), url)
                return None


async def through(out: Outbound, proxy: Proxy, url: str) -> None:
    """A request through a proxy, under the rules of every request of ours: neither the proxy nor
    what is asked of it may be where nobody may go."""
    towards = Policy.toward("ads proxy", url, deadline=DEADLINE, most_bytes=MOST)
    policy = replace(towards, hosts=towards.hosts | {proxy.host})
    plain = urlsplit(url).scheme == "http"
    if plain:  # the proxy looks the name up itself: so we look first
        await out.check(policy, url)
    way = Through(
        host=proxy.host,
        port=proxy.port or PORT,
        user=proxy.username or "",
        password=proxy.password,
        resolves=plain,
    )
    await out.get(policy, url, proxy=way)


def _ask_all(tx: Any) -> int:
    return store.ask_tests(tx, None, actor=SCHEDULE)


def _said(error: Transient | Permanent | BadInput) -> str:
    """The code first, by which it is found again; then the words."""
    code = getattr(error, "code", "")
    return f"{code}: {error}" if code else str(error)
