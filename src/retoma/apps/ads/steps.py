"""The verbs of the ads orchestrator: a session lives, a mission is extracted, its ads are stored.

Three stories, each told from the top at every poll and free of effects between its steps. A session is a
job because it outlives our processes: it holds its proxy until its end was seen. A mission is claimed
only where a session is ready; that claim is its allocation, and no two ever get the same one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from retoma.apps.ads import store
from retoma.apps.ads.clients import (
    ScrapeSeen,
    WorkerClient,
    WriterClient,
    WriteSeen,
    storage_scheme,
)
from retoma.apps.ads.model import (
    ERRORS,
    Event,
    Mission,
    Phase,
    Proxy,
    SessionEdge,
    Worker,
    Writer,
    data_url,
    scrape_payload,
    session_edge,
    writer_payload,
)
from retoma.apps.ads.store import EXTRACTION, PROXIES, SESSION, SESSIONS, STORAGE, Place
from retoma.apps.tools import Tools
from retoma.db import Transaction
from retoma.engine.context import Context
from retoma.engine.errors import Action as Retrying
from retoma.engine.errors import Code, ErrorClass, NotFound, Permanent, Transient, table
from retoma.engine.job import Scope
from retoma.engine.kind import Kind, job
from retoma.engine.outcome import Park, Skip, Snooze, Unknown
from retoma.engine.pool import Hold
from retoma.engine.remote import Edge, Remote
from retoma.engine.remote import Status as RemoteStatus
from retoma.engine.retry import Retry
from retoma.engine.states import ParkReason
from retoma.engine.transaction import Transaction as LentTransaction
from retoma.secret import Secret
from retoma.vault import Place as SecretPlace
from retoma.words import say

T = TypeVar("T")
MANY: Final = 1000  # attempts: how often a phase is tried again is the mission's own count
WORKER_LOST: Final = 900.0  # seconds of silence after which a worker is given up
AWAY: Final = "ERROR502"  # the code of a worker that has not answered for so long
NO_WRITER: Final = 30.0  # seconds between two looks for a writer
TOO_MANY: Final = 0.2  # of the ads: more that cannot be stored are the schema's fault
SCRAPE: Final = {
    "pending": Edge.GOING,
    "queued": Edge.GOING,
    "running": Edge.GOING,
    "completed": Edge.DONE,
    "empty": Edge.DONE,
    "failed": Edge.FAILED,
    "paused": Edge.FAILED,
    "cancelled": Edge.STOPPED,
    "not_found": Edge.GONE,
}
WRITE: Final = {
    "processing": Edge.GOING,
    "completed": Edge.DONE,
    "partial": Edge.DONE,
    "failed": Edge.FAILED,
    "not_found": Edge.GONE,
}
# What the engine says of remote work, in the document's codes.
SCRAPE_CODES: Final = {
    "remote_stopped": "ERROR201",
    "remote_timeout": "ERROR202",
    "remote_stalled": "ERROR202",
    "remote_gone": "ERROR200",
    "remote_failed": "ERROR200",
}
WRITE_CODES: Final = {
    "remote_gone": "ERROR300",
    "remote_failed": "ERROR300",
    "remote_timeout": "ERROR300",
    "remote_stalled": "ERROR300",
    "no_answer": "ERROR301",
    "timeout": "ERROR302",
}


# How often a phase is tried again is the mission's own count; a mistake of ours is not tried for ever.
CODES: Final = table(
    Code("exception", ErrorClass.BUG, Retrying.RETRY, 5, "erro interno"),
    *(
        Code(each.code, ErrorClass.TRANSIENT, Retrying.RETRY, None, each.means)
        for each in ERRORS.values()
    ),
)


def stories(tools: Tools) -> list[Kind]:
    """The kinds of this application, made with these tools."""
    ads = Ads(tools)
    how: dict[str, Any] = {
        "retry": Retry(attempts=MANY, base=5.0, cap=300.0),
        "codes": CODES,
        "application": "ads",
    }

    @job(name=SESSION, **how)
    async def session(ctx: Context, session: int) -> Any:
        return await ads.session(ctx, session)

    @job(name=EXTRACTION, holds=SESSIONS, **how)
    async def extraction(ctx: Context, mission: str) -> Any:
        return await ads.extraction(ctx, mission)

    @job(name=STORAGE, **how)
    async def storage(ctx: Context, mission: str) -> Any:
        return await ads.storage(ctx, mission)

    made: list[Any] = [session, extraction, storage]
    return [each.kind for each in made]


@dataclass(frozen=True, slots=True)
class Ads:
    """The three stories."""

    tools: Tools

    # — a session —

    async def session(self, ctx: Context, session: int) -> Any:
        """Opened, watched while missions have it, and ended; all of it seen by the worker itself."""
        seen = await self._read(lambda tx: store.look_at_session(tx, session))
        if seen.proxy is None and not (seen.wanted and seen.work):
            await ctx.write("end", store.end_session, session, "unwanted")
            return Skip("nobody wants it any more")
        last = await self._read(lambda tx: store.last_proxy(tx, seen.worker, session))
        proxy = await ctx.use(PROXIES, scope=Scope.RELEASE, shuns=last)
        await ctx.write("open", store.open_session, session, seen.worker, proxy.name)
        client = await self._worker_client(seen.worker)
        # One that is lost is only ended: nobody asks for it once more.
        lost = seen.lost or await self._asked_for(ctx, session, client, proxy.name)
        reason = lost or await self._watched(ctx, session, client)
        if reason is None:
            return Snooze(await self._knob("polling_session"))
        return await self._ended(ctx, session, client, proxy, reason)

    async def _asked_for(
        self, ctx: Context, session: int, client: WorkerClient, proxy: str
    ) -> str | None:
        """POST /session, once; the code of what went wrong. Asked twice it refreshes itself."""
        wanted = await self._proxy(proxy)

        async def ask() -> None:
            await client.open_session(wanted)

        try:
            await ctx.step("ask", ask, once=True, unknown=Unknown.REPEAT)
        except (Transient, Permanent) as error:
            await ctx.write("lost", store.lose_session, session, session_code(error))
            return session_code(error)
        return None

    async def _watched(self, ctx: Context, session: int, client: WorkerClient) -> str | None:
        """Why it is to end; None while it goes on."""
        status = await self._heard(session, client)
        seen = await self._read(lambda tx: store.look_at_session(tx, session))
        if seen.lost is not None:
            return seen.lost
        code = await self._trouble(seen, status)
        if code is not None:
            await ctx.write("lost", store.lose_session, session, code)
            return code
        if status == "ready" and not seen.ready:
            await ctx.write("ready", store.ready_session, session)
            return None
        if not seen.ready or seen.held:
            return None
        limit = await self._knob("session_limit")
        if seen.served >= limit:
            return "session_limit"
        if not seen.wanted:
            return "stopped"
        return None if seen.work else "finished"

    async def _heard(self, session: int, client: WorkerClient) -> str | None:
        """What the worker says of its session; None where it says nothing."""
        try:
            status = await client.session_status()
        except (Transient, Permanent):
            status = None
        silent = int(status is None)
        await self._write(lambda tx: tx.run(store.HEAR_SESSION, session=session, silent=silent))
        return status

    async def _trouble(self, seen: store.SessionSeen, status: str | None) -> str | None:
        """The code of what is wrong with it, if anything is."""
        if not seen.ready and seen.age > await self._knob("timeout_session"):
            return "ERROR101"
        if status is None:
            return AWAY if seen.silent > WORKER_LOST else None
        edge, code = session_edge(seen.status, status)
        if edge is SessionEdge.LOST:
            return code
        if edge is SessionEdge.RECONCILE and seen.ready and not seen.held:
            return "ERROR100"  # it scrapes, and for nobody that we know of
        return None

    async def _ended(
        self, ctx: Context, session: int, client: WorkerClient, proxy: Hold, reason: str
    ) -> Any:
        """DELETE /session, and seen to be over; until then its worker and its proxy stay held."""
        seen = await self._read(lambda tx: store.look_at_session(tx, session))
        await ctx.write("withdraw", store.withdraw, seen.worker, reason)
        every = await self._knob("polling_session")
        if seen.held and seen.lost is None:
            return Snooze(every)
        try:
            await client.close_session()
            over = await client.session_status() == "terminated"
        except (Transient, Permanent) as error:
            await ctx.progress(note=f"Cancelamento não confirmado: {error}"[:200])
            return Snooze(every)
        if not over:
            await ctx.progress(note="Cancelamento não confirmado")
            return Snooze(every)
        await ctx.write("end", store.end_session, session, reason)
        blamed = reason in ERRORS and ERRORS[reason].blames_proxy
        await proxy.release(worked=not blamed, by=seen.worker)
        return {"reason": reason, "served": seen.served}

    # — a mission: extraction —

    async def extraction(self, ctx: Context, mission: str) -> Any:
        """Scraped by the worker whose session came with the claim (§2.3 to §2.6)."""
        hold = await ctx.use(SESSIONS, scope=Scope.JOB)
        place = Place(**hold.value)
        turn = f"{ctx.generation}.{ctx.attempt}"
        if not await ctx.write("assigned", store.assign, mission, place, ctx.job, key=turn):
            await hold.release()
            return Skip("it is no longer to be done")
        wanted = await self._read(lambda tx: store.mission_of(tx, mission))
        worker = await self._worker(place.worker)
        try:
            found = await self._scraped(ctx, wanted, worker, place)
        except (Transient, Permanent) as error:
            await self._not_scraped(ctx, mission, place, hold, error, turn)
        ads, job_id = found["ads"], found["job_id"]
        url = None if not ads else self._data_url(worker, job_id)
        told = (mission, place, ctx.job, job_id, ads, url)
        await ctx.write("scraped", store.scraped, *told, key=turn)
        await hold.release()
        return {"ads_count": ads}

    async def _scraped(
        self, ctx: Context, mission: Mission, worker: Worker, place: Place
    ) -> dict[str, Any]:
        client = WorkerClient(self.tools.out, worker)
        config = scrape_payload(mission)

        async def ask(handle: str) -> RemoteStatus:
            await self._noted(
                ctx, lambda tx: store.scrape_started(tx, mission.id, ctx.job, handle, config)
            )
            seen = await self._read(lambda tx: store.look_at_session(tx, place.session))
            if seen.lost is not None:
                # Until its session was seen to end it may scrape on: nobody sends it again before.
                over = seen.ended or seen.lost == AWAY
                return RemoteStatus("failed" if over else "running", note=seen.lost)
            said = await client.scrape(handle)
            if SCRAPE.get(said.status) is Edge.GOING and said.ads_count is not None:
                told_of: dict[str, Any] = {"worker_job_id": handle}
                told_of |= {"ads_count": said.ads_count, "progress_pct": said.progress_pct}
                await self._noted(
                    ctx,
                    lambda tx: store.tell_progress(
                        tx, mission.id, Event.SCRAPE_PROGRESS, told_of
                    ),
                )
            return scrape_status(said, handle)

        async def find(key: str) -> str | None:
            knows, handle = await client.find_scrape(key)
            if knows or await client.session_status() != "scraping":
                return handle
            # It scrapes, and cannot say for whom: its session has to end before anybody sends again.
            await self._write(lambda tx: store.lose_session(tx, place.session, "ERROR100"))
            raise Transient("the worker scrapes and cannot say for whom", code="ERROR502")

        remote = Remote(
            send=client.start_scrape,
            ask=ask,
            find=find,
            stop=client.cancel_scrape,
            statuses=SCRAPE,
            failure=scrape_failure,
            interval=await self._knob("polling_job"),
            timeout=await self._knob("timeout_job"),
        )
        found: dict[str, Any] = await ctx.remote("scrape", remote, config)
        return found

    async def _not_scraped(
        self,
        ctx: Context,
        mission: str,
        place: Place,
        hold: Hold,
        error: Transient | Permanent,
        turn: str,
    ) -> None:
        """Another try, on whatever session comes next; or the end of the mission."""
        code = SCRAPE_CODES.get(error.code, error.code)
        if code not in ERRORS:
            raise error  # a key that is wrong, a request they refuse: a person must see to it
        seen = await self._read(lambda tx: store.look_at_session(tx, place.session))
        lost = ERRORS.get(seen.lost or "")
        if lost is not None and lost.phase is Phase.SESSION:
            code = lost.code
        verdict = await ctx.write(
            "not_scraped", scrape_failed, mission, place, code, str(error), key=turn
        )
        await hold.release(worked=False)
        if verdict.again:
            raise Transient(str(error), code=verdict.code, retry_after=error_wait(error))
        raise Permanent(str(error), code=verdict.code)

    def _data_url(self, worker: Worker, job_id: str) -> str:
        if worker.storage_domain is None:
            raise Permanent(f"{worker.name} has no storage_domain", code="config")
        return data_url(worker.storage_domain, job_id, storage_scheme(worker))

    # — a mission: storage —

    async def storage(self, ctx: Context, mission: str) -> Any:
        """Its ads are handed to a writer, which is followed to its end (§3)."""
        turn = f"{ctx.generation}.{ctx.attempt}"
        writer = await ctx.write("writer", store.choose_writer, mission, key=turn)
        if writer is None:
            await ctx.progress(note="nenhum writer disponível")
            return Snooze(NO_WRITER)
        url = await self._read(lambda tx: store.data_url_of(tx, mission))
        client = WriterClient(self.tools.out, await self._writer(writer))
        try:
            found = await self._written(ctx, mission, client, url)
        except (Transient, Permanent) as error:
            return await self._not_written(ctx, mission, error, turn)
        if too_many_failed(found):
            text = f"{found['failed']} de {found['total']} anúncios recusados"
            await ctx.write("refused", write_failed, mission, "ERROR303", text, key=turn)
            return Park(text, ParkReason.CONFIG)
        told = (mission, ctx.job, found["job_id"], found["success"], found["failed"])
        return await ctx.write("written", store.written, *told, key=turn)

    async def _written(
        self, ctx: Context, mission: str, client: WriterClient, url: str
    ) -> dict[str, Any]:
        async def send(key: str, payload: Any) -> str:
            return await client.process(writer_payload(key, payload))

        async def find(key: str) -> str | None:
            return None if (await client.status(key)).status == "not_found" else key

        async def ask(handle: str) -> RemoteStatus:
            await self._noted(ctx, lambda tx: store.write_started(tx, mission, handle, url))
            said = await client.status(handle)
            if WRITE.get(said.status) is Edge.GOING and said.processed is not None:
                told = {"processed": said.processed, "total": said.total}
                told_of = {"writer_job_id": handle, **told}
                await self._noted(
                    ctx,
                    lambda tx: store.tell_progress(tx, mission, Event.WRITER_PROGRESS, told_of),
                )
            return write_status(said, handle)

        remote = Remote(
            send=send,
            ask=ask,
            find=find,
            statuses=WRITE,
            failure=write_failure,
            interval=await self._knob("polling_job"),
            timeout=await self._knob("timeout_writer"),
        )
        found: dict[str, Any] = await ctx.remote("process", remote, url)
        return found

    async def _not_written(
        self, ctx: Context, mission: str, error: Transient | Permanent, turn: str
    ) -> Any:
        code = WRITE_CODES.get(error.code, error.code)
        if code not in ERRORS:
            raise error
        verdict = await ctx.write(
            "not_written", write_failed, mission, code, str(error), key=turn
        )
        if verdict.action == "operator":
            return Park(str(error) or code, ParkReason.CONFIG)
        if verdict.again:
            raise Transient(str(error), code=verdict.code, retry_after=error_wait(error))
        raise Permanent(str(error), code=verdict.code)

    # — what they need —

    async def _noted(self, ctx: Context, fn: Callable[[LentTransaction], None]) -> None:
        """What is seen while remote work is asked after: also when the story has ended, or is to.

        So it is no step; but who no longer holds the job notes nothing.
        """

        def note(tx: LentTransaction) -> None:
            if store.holds(tx, ctx.job, ctx.epoch):
                fn(tx)

        await self.tools.retoma.write(note)

    async def _worker_client(self, worker: str) -> WorkerClient:
        return WorkerClient(self.tools.out, await self._worker(worker))

    async def _worker(self, worker: str) -> Worker:
        row = await self._one(store.GET_WORKER, worker=worker)
        key = await self._secret("ads_workers", "api_key", worker)
        return Worker(row[0], row[1], row[2], key or Secret(""), row[3])

    async def _writer(self, writer: str) -> Writer:
        row = await self._one(store.GET_WRITER, writer=writer)
        key = await self._secret("ads_writers", "api_key", writer)
        return Writer(row[0], row[1], row[2], key or Secret(""))

    async def _proxy(self, proxy: str) -> Proxy:
        row = await self._one(store.GET_PROXY, proxy=proxy)
        password = await self._secret("ads_proxies", "password", proxy)
        return Proxy(row[0], row[1], row[2], row[3], row[4], password)

    async def _secret(self, table: str, column: str, row: str) -> Secret | None:
        vault = await self.tools.vault()
        return await vault.get(SecretPlace(table, column, row))

    async def _one(self, statement: Any, **params: Any) -> Any:
        row = await self._read(lambda tx: tx.one(statement, **params))
        if row is None:
            raise NotFound(say("there is no {what}", what=", ".join(params.values())))
        return row

    async def _knob(self, name: str) -> Any:
        return (await self.tools.retoma.knobs.get(f"ads.{name}")).value

    async def _read(self, fn: Callable[[Transaction], T]) -> T:
        return await (await self.tools.retoma.database()).read(fn)

    async def _write(self, fn: Callable[[Any], T]) -> T:
        return await self.tools.retoma.write(fn)


def session_code(error: Transient | Permanent) -> str:
    """Of a session that could not even be asked for."""
    return error.code if error.code in ERRORS else "ERROR100"


def scrape_status(seen: ScrapeSeen, handle: str) -> RemoteStatus:
    """A status without a count that it must have ends nothing."""
    status = seen.status
    if status == "completed" and seen.ads_count is None:
        status = "completed without ads_count"
    share = None if seen.progress_pct is None else seen.progress_pct / 100
    ads = 0 if status == "empty" else seen.ads_count
    note = seen.code if seen.code in ERRORS else seen.error
    return RemoteStatus(status, value={"ads": ads, "job_id": handle}, progress=share, note=note)


def scrape_failure(status: RemoteStatus) -> Exception:
    """What a worker says of its own storage has codes of its own."""
    note = status.note or f"scrape {status.status}"
    return Transient(note, code=note if note in ERRORS else "ERROR200")


def write_status(seen: WriteSeen, handle: str) -> RemoteStatus:
    total, done = seen.total, seen.processed
    share = min(1.0, done / total) if total and done is not None else None
    value = {
        "job_id": handle,
        "total": total or 0,
        "success": seen.success_count or 0,
        "failed": seen.failed_count or 0,
    }
    return RemoteStatus(seen.status, value=value, progress=share, note=seen.error)


def write_failure(status: RemoteStatus) -> Exception:
    return Transient(status.note or "writer failed", code="ERROR300")


def too_many_failed(found: dict[str, Any]) -> bool:
    """Nothing stored, or more refused than chance explains: the tables do not fit the ads."""
    total, refused = found["total"], found["failed"]
    return bool(total) and (found["success"] == 0 or refused > TOO_MANY * total)


def scrape_failed(
    tx: Any, mission: str, place: Place, code: str, message: str
) -> store.Verdict:
    told = {"worker_id": place.worker}
    verdict = store.failed(tx, mission, code, message, Event.SCRAPE_FAILED, told)
    store.leave_worker(tx, mission, place)
    return verdict


def write_failed(tx: Any, mission: str, code: str, message: str) -> store.Verdict:
    return store.failed(tx, mission, code, message, Event.WRITER_FAILED, {"error": message})


def error_wait(error: Transient | Permanent) -> float | None:
    return error.retry_after if isinstance(error, Transient) else None
