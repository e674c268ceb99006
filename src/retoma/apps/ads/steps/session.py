"""A session lives: opened, watched while missions have it, ended.

It is a job because it outlives our processes: it holds its proxy until its end was seen.
"""

from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.ads import store
from retoma.apps.ads.clients import WorkerClient
from retoma.apps.ads.model import AWAY, ERRORS, SessionEdge, session_edge
from retoma.apps.ads.steps.hands import UNCONFIRMED, Hands, error_wait
from retoma.apps.ads.store import PROXIES
from retoma.engine.handlers.context import Context
from retoma.engine.limits.pools import Hold
from retoma.engine.rules.errors import Permanent, Transient
from retoma.engine.rules.job import Scope
from retoma.engine.rules.outcome import Skip, Snooze, Unknown, Unwound
from retoma.words import say

STOPPING: Final = say(
    "an abandoned scrape still runs on this worker: it was asked to cancel it"
)
WORKER_LOST: Final = 900.0  # seconds of silence after which a worker is given up


@dataclass(frozen=True, slots=True)
class Session:
    """The story of a session."""

    hands: Hands

    async def tell(self, ctx: Context, session: int) -> Any:
        """Opened, watched while missions have it, and ended; all of it seen by the worker itself."""
        seen = await self.hands.read(lambda tx: store.look_at_session(tx, session))
        if seen.ended:
            return Skip(say("a person declared the session lost"))
        if seen.proxy is None and not (seen.wanted and seen.work):
            await ctx.write("end", store.end_session, session, "unwanted")
            return Skip(say("no mission needs the session any more"))
        client = await self.hands.worker_client(seen.worker)
        if (seen.proxy is None or seen.lost) and await self.hands.scrapes_on(
            seen.worker, client
        ):
            await ctx.progress(note=STOPPING)
            return Snooze(await self.hands.knob("polling_session"))
        proxy = await self._proxy(ctx, session, seen.worker)
        await ctx.write("open", store.open_session, session, seen.worker, proxy.name)
        # One that is lost is only ended: nobody asks for it once more.
        lost = seen.lost or await self._asked_for(ctx, session, client, proxy.name)
        reason = lost or await self._watched(ctx, session, client)
        if reason is None:
            return Snooze(await self.hands.knob("polling_session"))
        return await self._ended(ctx, session, client, proxy, reason)

    async def _proxy(self, ctx: Context, session: int, worker: str) -> Hold:
        """Never the one before, if there is another; where there is none it waits outside."""
        last = await self.hands.read(lambda tx: store.last_proxy(tx, worker, session))
        try:
            return await ctx.use(PROXIES, scope=Scope.RELEASE, shuns=last)
        except Unwound:
            await ctx.write("no_proxy", store.wait_for_proxy, session)
            raise

    async def _asked_for(
        self, ctx: Context, session: int, client: WorkerClient, proxy: str
    ) -> str | None:
        """POST /session, once; the code of what went wrong. Asked twice it refreshes itself."""
        wanted = await self.hands.proxy(proxy)

        async def ask() -> None:
            await client.open_session(wanted)

        try:
            await ctx.step("ask", ask, once=True, unknown=Unknown.REPEAT)
        except (Transient, Permanent) as error:
            why = (session_code(error), str(error), error_wait(error))
            await ctx.write("lost", store.lose_session, session, *why)
            return session_code(error)
        return None

    async def _watched(self, ctx: Context, session: int, client: WorkerClient) -> str | None:
        """Why it is to end; None while it goes on."""
        before = await self.hands.read(lambda tx: store.look_at_session(tx, session))
        status = await self._heard(ctx, session, client)
        seen = await self.hands.read(lambda tx: store.look_at_session(tx, session))
        if seen.lost is not None:
            return seen.lost
        code = await self._trouble(seen, status, held=before.held or seen.held)
        if code is not None:
            await ctx.write("lost", store.lose_session, session, code)
            return code
        if not seen.ready and not seen.wanted:
            return "stopped"
        if status == "ready" and not seen.ready:
            await ctx.write("ready", store.ready_session, session)
            return None
        if not seen.ready or seen.held:
            return None
        limit = await self.hands.knob("session_limit")
        if seen.served >= limit:
            return "session_limit"
        if not seen.wanted or not seen.offered:
            return "stopped"
        return None if seen.work else "finished"

    async def _heard(self, ctx: Context, session: int, client: WorkerClient) -> str | None:
        """What the worker says of its session; None where it says nothing."""
        try:
            status = await client.session_status()
        except (Transient, Permanent):
            status = None
        silent = int(status is None)
        await self.hands.noted(
            ctx, lambda tx: tx.run(store.SQL.hear_session, session=session, silent=silent)
        )
        return status

    async def _trouble(
        self, seen: store.SessionSeen, status: str | None, *, held: bool
    ) -> str | None:
        """The code of what is wrong with it, if anything is."""
        # One that says `scraping` has come up: what it scrapes is an earlier session's, and is waited
        # for. So it may say `ready` later than a session has time to.
        up = status == "ready" or (status == "scraping" and held)
        opening = not seen.ready and not up
        if opening and seen.age > await self.hands.knob("timeout_session"):
            return "ERROR101"
        if status is None:
            return AWAY if seen.silent > WORKER_LOST else None
        edge, code = session_edge(seen.status, status)
        if edge is SessionEdge.LOST:
            return code
        if edge is SessionEdge.RECONCILE and not held:
            return "ERROR200"  # it scrapes for nobody that we know of, which no proxy can help
        return None

    async def _ended(
        self, ctx: Context, session: int, client: WorkerClient, proxy: Hold, reason: str
    ) -> Any:
        """DELETE /session, and seen to be over; until then its worker and its proxy stay held."""
        seen = await self.hands.read(lambda tx: store.look_at_session(tx, session))
        await ctx.write("withdraw", store.withdraw, seen.worker, reason)
        every = await self.hands.knob("polling_session")
        if seen.held and seen.lost is None:
            return Snooze(every)
        try:
            await client.close_session()
            over = await client.session_status() == "terminated"
        except (Transient, Permanent) as error:
            await ctx.progress(note=f"{UNCONFIRMED}: {error}"[:200])
            return Snooze(every)
        if not over:
            await ctx.progress(note=UNCONFIRMED)
            return Snooze(every)
        await ctx.write("end", store.end_session, session, reason)
        blamed = reason in ERRORS and ERRORS[reason].blames_proxy
        await proxy.release(worked=not blamed, by=seen.worker)
        return {"reason": reason, "served": seen.served}


def session_code(error: Transient | Permanent) -> str:
    """Of a session that could not even be asked for."""
    return error.code if error.code in ERRORS else AWAY
