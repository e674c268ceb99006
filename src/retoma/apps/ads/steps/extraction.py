"""A mission is extracted. It is claimed only where a session is ready: that claim is its allocation."""

from dataclasses import dataclass, replace
from typing import Any, Final

from retoma.apps.ads import store
from retoma.apps.ads.clients import ScrapeSeen, WorkerClient, storage_scheme
from retoma.apps.ads.model import (
    ERRORS,
    UNUSABLE_ID,
    Action,
    Event,
    Mission,
    Phase,
    Worker,
    data_url,
    scrape_payload,
)
from retoma.apps.ads.steps.hands import (
    UNCONFIRMED,
    UNHEARD,
    UNKNOWN,
    Hands,
    error_wait,
    heard,
    refusal_code,
)
from retoma.apps.ads.store import SESSIONS, Place
from retoma.codec import decode
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.remote import Absent, Edge, Remote
from retoma.engine.handlers.remote import Status as RemoteStatus
from retoma.engine.limits.pools import Hold
from retoma.engine.rules.errors import Permanent, Transient
from retoma.engine.rules.job import Scope
from retoma.engine.rules.outcome import Park, Skip, Snooze
from retoma.engine.rules.states import ParkReason
from retoma.words import Said, say

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
    "lost": Edge.FAILED,  # our own word: its worker was given up
}
ON_ITS_WAY: Final = (
    5.0  # seconds a scrape that was asked for without an answer may take to begin
)
# What the engine says of remote work, in the document's codes.
SCRAPE_CODES: Final = {
    "remote_stopped": "ERROR201",
    "remote_timeout": "ERROR202",
    "remote_stalled": "ERROR202",
    "remote_gone": "ERROR200",
    "remote_failed": "ERROR200",
    "throttled": "ERROR502",  # it has asked for time, which costs no try
}
# What the engine says of remote work, in words.
SAID: Final = {
    "remote_stopped": say("the worker canceled the scrape"),
    "remote_timeout": say("the scrape took too long (timeout_job)"),
    "remote_stalled": say("the scrape made no progress any more"),
}
CANCELED: Final = "ERROR201"
NOT_THERE: Final = say("the worker does not know this scrape")
ENGINE: Final = (
    "the remote work ended",
    "nothing is known there",
)  # with which its words begin
# What a worker says of a session that was lost in a mission's hands, in words.
LOST: Final = {
    "ERROR100": say("the worker {worker} ended its session (terminated)"),
    "ERROR101": say("the session of the worker {worker} was not ready in time"),
    "ERROR102": say("the session of the worker {worker} hangs (stuck)"),
    "ERROR103": say("the session of the worker {worker} broke off (disconnected)"),
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
            return Skip(say("the mission is no longer in the queue"))
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
            absent_after=ON_ITS_WAY,
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
            text = str(error)
            await ctx.progress(
                note=(text if text.startswith(UNKNOWN) else f"{UNKNOWN}: {text}")[:200]
            )
            return Snooze(min(await self.hands.knobs("polling_job", "polling_session")))
        code = SCRAPE_CODES.get(error.code, error.code)
        if code not in ERRORS:
            await self._leave(ctx, mission, place, hold, error, turn)
            raise error  # a key that is wrong, a request they refuse: a person must see to it
        seen = await self.hands.read(lambda tx: store.look_at_session(tx, place.session))
        worker = (await self.hands.worker(place.worker)).name
        lost, text = ERRORS.get(seen.lost or ""), str(error)
        if seen.given_up:
            text = _lost_sight(worker)
        elif text.startswith(ENGINE):
            text = SAID.get(error.code, NOT_THERE)
        if lost is not None and lost.phase is Phase.SESSION:
            code = lost.code
            text = LOST[code].format(worker=worker) if code in LOST else text
        verdict = await ctx.write(
            "not_scraped", scrape_failed, mission, place, code, text, key=turn
        )
        await hold.release(worked=False)
        if verdict.action == Action.OPERATOR:
            return Park(f"{code}: {text}", ParkReason.CONFIG)
        if verdict.again:
            raise Transient(text, code=verdict.code, retry_after=error_wait(error))
        raise Permanent(text, code=verdict.code)

    async def _leave(
        self,
        ctx: Context,
        mission: str,
        place: Place,
        hold: Hold,
        error: Transient | Permanent,
        turn: str,
    ) -> None:
        """Others may have its session while a person looks, unless it may still scrape there."""
        code = refusal_code(error)
        await ctx.write("refusal", store.note_refusal, mission, code, str(error), key=turn)
        if not ctx.holds_remote_work():
            await ctx.write("left", store.leave_worker, mission, place, key=turn)
            await hold.release()

    def _data_url(self, worker: Worker, job_id: str) -> str:
        if worker.storage_domain is None:
            raise Permanent(
                say("{worker} has no storage_domain", worker=worker.name), code="config"
            )
        return data_url(worker.storage_domain, job_id, storage_scheme(worker))


def _idle(worker: str, said: str | None, *, arrived: bool = True) -> Absent:
    """`said`: what the worker answered instead of an id, where it answered."""
    asked = (
        say(
            "{worker} did not answer the request for a scrape, and was seen without any",
            worker=worker,
        )
        if said is None
        else say(
            "{worker} answered the request for a scrape without an id that can be used ({said}),"
            " and was seen without any",
            worker=worker,
            said=said,
        )
    )
    return Absent(asked, arrived=arrived)


def _lost_sight(worker: str) -> Said:
    return say("the worker {worker} was given up: nobody saw the scrape end", worker=worker)


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
        self._worker_id = place.worker
        self._worker = client.name
        self._stopping = False

    async def send(self, key: str, payload: Any) -> str:
        seen = await self._seen()
        if seen.lost is not None or seen.ended:
            # Another session may have begun at this worker: it is not ours to scrape in.
            raise Transient(
                say("the session of {worker} is over", worker=self._worker), code="ERROR100"
            )
        if await self._hands.scrapes_on(self._worker_id, self._client):
            raise Transient(
                say("{worker} still runs an abandoned scrape", worker=self._worker),
                code="ERROR502",
            )
        return await self._client.start_scrape(key, payload)

    async def find(self, key: str) -> str | Absent | None:
        seen = await self._seen()
        if seen.given_up:
            return Absent(_lost_sight(self._worker), code="remote_timeout")
        said = unusable_id(self._ctx)
        if seen.ended and seen.next_ready:
            return _idle(self._worker, said)  # another session of that worker was seen to rest
        knows, handle = await heard(self._client.find_scrape(key))
        if knows:
            return (
                _idle(self._worker, said, arrived=False) if handle is None and said else handle
            )
        # It cannot say for whom it works, only whether it does. To end its session would end its
        # answer, and perhaps not the scrape: so it is asked until a session of it is seen to rest.
        status = await heard(self._client.session_status())
        if status == "ready" and not seen.ended:
            return _idle(self._worker, said, arrived=False)
        late = await self._late()
        if seen.ended and late is not None and (late == CANCELED or not seen.next_comes):
            return _idle(self._worker, said)  # no other session will say more
        if late is not None and not seen.ended:
            session = self._session
            await self._hands.noted(self._ctx, lambda tx: store.lose_session(tx, session, late))
        doing = (
            say("{worker} still scrapes", worker=self._worker)
            if status == "scraping"
            else say(
                "the session of {worker} is over, its scrape perhaps not: its next session will"
                " tell",
                worker=self._worker,
            )
        )
        raise Transient(say("{head}: {tail}", head=UNKNOWN, tail=doing), code=UNHEARD)

    async def _late(self) -> str | None:
        """Why a scrape that nobody can name is to be stopped: nobody wants it, or it took too long."""
        [timeout] = await self._hands.knobs("timeout_job")
        mission = self._mission
        return await self._hands.read(lambda tx: store.scrape_is_late(tx, mission, timeout))

    async def ask(self, handle: str) -> RemoteStatus:
        mission, job, config = self._mission, self._ctx.job, self.config
        await self._hands.noted(
            self._ctx, lambda tx: store.scrape_started(tx, mission, job, handle, config)
        )
        seen = await self._seen()
        if seen.given_up:
            worker = self._worker_id
            await self._hands.noted(
                self._ctx, lambda tx: store.leave_scrape(tx, worker, handle)
            )
            return RemoteStatus("lost", note=_lost_sight(self._worker))
        said = await self._client.scrape(handle)
        if said.status == "paused":
            said = await self._end_paused(handle, said)
        if SCRAPE.get(said.status) is Edge.GOING:
            if self._stopping:
                return RemoteStatus(said.status, note=UNCONFIRMED)
            if seen.lost is not None:
                # Its session is of no use, or has ended; the scrape may go on all the same.
                await self.stop(handle)
                said = await self._client.scrape(handle)
                return replace(scrape_status(said, handle), note=f"{UNCONFIRMED}: {seen.lost}")
            await self._tell(handle, said)
        return scrape_status(said, handle)

    async def _end_paused(self, handle: str, said: ScrapeSeen) -> ScrapeSeen:
        """It has failed (§2.4.4), and must not stand in the way of the next: it is canceled first."""
        await self._client.cancel_scrape(handle)
        now = await self._client.scrape(handle)
        over = SCRAPE.get(now.status) in (Edge.STOPPED, Edge.GONE, Edge.FAILED)
        return replace(said, error=said.error or "paused") if over else now

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


def unusable_id(ctx: Context) -> str | None:
    """What a worker answered to the last request for a scrape in the place of an id, if it did."""
    sent = max(ctx.remote_steps(), key=lambda step: int(step.id.key), default=None)
    told = decode(sent.value) if sent is not None and sent.value is not None else None
    error = str(told.get("error", "")) if isinstance(told, dict) else ""
    return error if error.startswith(UNUSABLE_ID) else None


def scrape_status(seen: ScrapeSeen, handle: str) -> RemoteStatus:
    """A status without a count that it must have ends nothing."""
    status = seen.status
    if status == "completed" and seen.ads_count is None:
        status = "completed without ads_count"
    share = None if seen.progress_pct is None else seen.progress_pct / 100
    ads = 0 if status == "empty" else seen.ads_count
    code = seen.code if seen.code in ERRORS else None
    value = {"ads": ads, "job_id": handle, "code": code}
    return RemoteStatus(status, value=value, progress=share, note=seen.error)


def scrape_failure(status: RemoteStatus) -> Exception:
    """What a worker says of its own storage has codes of its own."""
    if status.status == "lost":
        return Transient(status.note or "", code="ERROR202")
    code = (status.value or {}).get("code") or "ERROR200"
    said = say("the worker ended the scrape as {status}", status=status.status)
    return Transient(
        status.note or say("{head}: {tail}", head=ERRORS[code].means, tail=said), code=code
    )


def scrape_failed(
    tx: Any, mission: str, place: Place, code: str, message: str
) -> store.Verdict:
    told = {"worker_id": place.worker, "worker_job_id": store.scrape_job(tx, mission)}
    verdict = store.failed(tx, mission, code, message, Event.SCRAPE_FAILED, told)
    store.leave_worker(tx, mission, place)
    return verdict
