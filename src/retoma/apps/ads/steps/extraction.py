"""A mission is extracted. It is claimed only where a session is ready: that claim is its allocation."""

from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.ads import store
from retoma.apps.ads.clients import ScrapeSeen, WorkerClient, storage_scheme
from retoma.apps.ads.model import (
    AWAY,
    ERRORS,
    Action,
    Event,
    Mission,
    Phase,
    Worker,
    data_url,
    scrape_payload,
)
from retoma.apps.ads.steps.hands import UNCONFIRMED, UNHEARD, Hands, error_wait, heard
from retoma.apps.ads.store import SESSIONS, Place
from retoma.engine.context import Context
from retoma.engine.errors import Permanent, Transient
from retoma.engine.job import Scope
from retoma.engine.outcome import Park, Skip, Snooze
from retoma.engine.pool import Hold
from retoma.engine.remote import Edge, Remote
from retoma.engine.remote import Status as RemoteStatus
from retoma.engine.states import ParkReason

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
# What the engine says of remote work, in the document's codes.
SCRAPE_CODES: Final = {
    "remote_stopped": "ERROR201",
    "remote_timeout": "ERROR202",
    "remote_stalled": "ERROR202",
    "remote_gone": "ERROR200",
    "remote_failed": "ERROR200",
}


@dataclass(frozen=True, slots=True)
class Extraction:
    """The story of a mission up to its ads."""

    hands: Hands

    async def tell(self, ctx: Context, mission: str) -> Any:
        """Scraped by the worker whose session came with the claim (§2.3 to §2.6)."""
        hold = await ctx.use(SESSIONS, scope=Scope.JOB)
        parks = await self.hands.read(lambda tx: store.parks_of(tx, mission))
        turn = f"{ctx.generation}.{ctx.attempt}.{parks}"
        offered = Place(**hold.value)
        place = await ctx.write("assigned", store.assign, mission, offered, ctx.job, key=turn)
        if place is None:
            await hold.release()
            return Skip("it is no longer to be done")
        wanted = await self.hands.read(lambda tx: store.mission_of(tx, mission))
        worker = await self.hands.worker(place.worker)
        try:
            found = await self._scraped(ctx, wanted, worker, place)
        except (Transient, Permanent) as error:
            return await self._not_scraped(ctx, mission, place, hold, error, turn)
        ads, job_id = found["ads"], found["job_id"]
        url = None if not ads else self._data_url(worker, job_id)
        told = (mission, place, ctx.job, job_id, ads, url)
        await ctx.write("scraped", store.scraped, *told, key=turn)
        await hold.release()
        return {"ads_count": ads}

    async def _scraped(
        self, ctx: Context, mission: Mission, worker: Worker, place: Place
    ) -> dict[str, Any]:
        client = WorkerClient(self.hands.tools.out, worker)
        scraping = Scraping(self.hands, ctx, mission, client, place)
        interval, timeout = await self.hands.knobs("polling_job", "timeout_job")
        remote = Remote(
            send=scraping.send,
            ask=scraping.ask,
            find=scraping.find,
            stop=scraping.stop,
            statuses=SCRAPE,
            failure=scrape_failure,
            interval=interval,
            timeout=timeout,
        )
        found: dict[str, Any] = await ctx.remote("scrape", remote, scraping.config)
        return found

    async def _not_scraped(
        self,
        ctx: Context,
        mission: str,
        place: Place,
        hold: Hold,
        error: Transient | Permanent,
        turn: str,
    ) -> Any:
        """Another try, on whatever session comes next; or the end of the mission."""
        if error.code == UNHEARD:
            return Snooze(await self.hands.knob("polling_job"))
        code = SCRAPE_CODES.get(error.code, error.code)
        if code not in ERRORS:
            await self._leave(ctx, mission, place, hold, turn)
            raise error  # a key that is wrong, a request they refuse: a person must see to it
        seen = await self.hands.read(lambda tx: store.look_at_session(tx, place.session))
        lost = ERRORS.get(seen.lost or "")
        if lost is not None and lost.phase is Phase.SESSION:
            code = lost.code
        verdict = await ctx.write(
            "not_scraped", scrape_failed, mission, place, code, str(error), key=turn
        )
        await hold.release(worked=False)
        if verdict.action == Action.OPERATOR:
            return Park(str(error) or code, ParkReason.CONFIG)
        if verdict.again:
            raise Transient(str(error), code=verdict.code, retry_after=error_wait(error))
        raise Permanent(str(error), code=verdict.code)

    async def _leave(
        self, ctx: Context, mission: str, place: Place, hold: Hold, turn: str
    ) -> None:
        """Others may have its session while a person looks, unless it may still scrape there."""
        if not ctx.holds_remote_work():
            await ctx.write("left", store.leave_worker, mission, place, key=turn)
            await hold.release()

    def _data_url(self, worker: Worker, job_id: str) -> str:
        if worker.storage_domain is None:
            raise Permanent(f"{worker.name} has no storage_domain", code="config")
        return data_url(worker.storage_domain, job_id, storage_scheme(worker))


class Scraping:
    """A scrape as its worker is spoken to about it. Makes no steps: it is asked after the story too."""

    def __init__(
        self, hands: Hands, ctx: Context, mission: Mission, client: WorkerClient, place: Place
    ) -> None:
        self.config = scrape_payload(mission)
        self._hands = hands
        self._ctx = ctx
        self._mission = mission.id
        self._client = client
        self._session = place.session
        self._stopping = False

    async def send(self, key: str, payload: Any) -> str:
        seen = await self._seen()
        if seen.lost is not None or seen.over:
            # Another session may have begun at this worker: it is not ours to scrape in.
            raise Transient("its session has ended", code="ERROR100")
        return await self._client.start_scrape(key, payload)

    async def find(self, key: str) -> str | None:
        if (await self._seen()).over:
            return None
        knows, handle = await heard(self._client.find_scrape(key))
        if knows or await heard(self._client.session_status()) != "scraping":
            return handle
        # It scrapes, and cannot say for whom: its session has to end before anybody sends again.
        await self._hands.noted(
            self._ctx, lambda tx: store.lose_session(tx, self._session, "ERROR100")
        )
        raise Transient("the worker scrapes and cannot say for whom", code=UNHEARD)

    async def ask(self, handle: str) -> RemoteStatus:
        mission, job, config = self._mission, self._ctx.job, self.config
        await self._hands.noted(
            self._ctx, lambda tx: store.scrape_started(tx, mission, job, handle, config)
        )
        seen = await self._seen()
        if seen.lost is not None:
            # Until its session was seen to end it may scrape on: nobody sends it again before.
            return RemoteStatus("failed" if seen.over else "running", note=seen.lost)
        said = await self._client.scrape(handle)
        if SCRAPE.get(said.status) is Edge.GOING:
            if self._stopping:
                return RemoteStatus(said.status, note=UNCONFIRMED)
            await self._tell(handle, said)
        return scrape_status(said, handle)

    async def stop(self, handle: str) -> None:
        self._stopping = True
        await self._client.cancel_scrape(handle)

    async def _tell(self, handle: str, said: ScrapeSeen) -> None:
        if said.ads_count is None:
            return
        told: dict[str, Any] = {"worker_job_id": handle, "ads_count": said.ads_count}
        told |= {"progress_pct": said.progress_pct}
        await self._hands.noted(
            self._ctx,
            lambda tx: store.tell_progress(tx, self._mission, Event.SCRAPE_PROGRESS, told),
        )

    async def _seen(self) -> store.SessionSeen:
        return await self._hands.read(lambda tx: store.look_at_session(tx, self._session))


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
    if note == AWAY:
        return Transient(f"{AWAY}: its worker has not answered for too long", code="ERROR202")
    return Transient(note, code=note if note in ERRORS else "ERROR200")


def scrape_failed(
    tx: Any, mission: str, place: Place, code: str, message: str
) -> store.Verdict:
    told = {"worker_id": place.worker, "worker_job_id": store.scrape_job(tx, mission)}
    verdict = store.failed(tx, mission, code, message, Event.SCRAPE_FAILED, told)
    store.leave_worker(tx, mission, place)
    return verdict
