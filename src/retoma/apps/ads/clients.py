"""The two services of the document as we speak to them (§9), and what each of their answers means.

One table for each endpoint: status or failure → code. HTTP 401 is a key that a person must see to, and
not ERROR401, which is a worker's trouble with its own storage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from retoma.apps.ads.model import Proxy, Worker, Writer, checked_remote_id, session_payload
from retoma.engine.errors import Permanent, Transient, Unsure
from retoma.outbound import Answer, Outbound, Policy, Sort
from retoma.secret import Secret

OK: Final = 200
GONE: Final = 404
BUSY: Final = 409
AWAY: Final = Sort(Transient, "ERROR502")
WORKER: Final[Mapping[int, Sort]] = {
    BUSY: Sort(Transient, "ERROR502"),
    429: Sort(Transient, "ERROR502"),
    503: AWAY,
    400: Sort(Permanent, "ERROR500"),
    413: Sort(Permanent, "ERROR500"),
    422: Sort(Permanent, "config"),
}
WRITER: Final[Mapping[int, Sort]] = {
    400: Sort(Permanent, "ERROR303"),
    413: Sort(Permanent, "ERROR303"),
    422: Sort(Permanent, "config"),
    429: Sort(Transient, "ERROR302"),
    503: Sort(Transient, "ERROR301"),
}
# What our own client says of a service that cannot be spoken to, in the words of the document.
WRITER_AWAY: Final = {"no_answer": "ERROR301", "timeout": "ERROR302"}
MOST: Final = 1 << 20  # bytes of an answer: a status may carry `data`, which nobody wants here
DEADLINE: Final = 30.0


@dataclass(frozen=True, slots=True)
class ScrapeSeen:
    """What a worker says of a scrape; what it does not say is None."""

    status: str
    ads_count: int | None = None
    progress_pct: float | None = None
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class WriteSeen:
    """What a writer says of a job of its own."""

    status: str
    total: int | None = None
    processed: int | None = None
    success_count: int | None = None
    failed_count: int | None = None
    failed_items: tuple[Any, ...] = ()
    error: str | None = None


class WorkerClient:
    """One worker, behind its key."""

    def __init__(self, out: Outbound, worker: Worker) -> None:
        self._out = out
        self._base = worker.url.rstrip("/")
        self._headers = {"x-api-key": worker.api_key}
        self._policy = Policy.toward(
            "ads worker", worker.url, deadline=DEADLINE, most_bytes=MOST, answers=WORKER
        )

    async def open_session(self, proxy: Proxy) -> None:
        told = session_payload(proxy)
        inside = {
            name: value.reveal() if isinstance(value, Secret) else value
            for name, value in told["proxy"].items()
        }
        await self._post("/session", {**told, "proxy": inside})

    async def session_status(self) -> str:
        answer = await self._get("/session/status", accept=(GONE,))
        if answer.status == GONE:
            return "terminated"
        status = _object(answer).get("status")
        return status if isinstance(status, str) else ""

    async def close_session(self) -> None:
        url = f"{self._base}/session"
        await self._out.request(
            self._policy, "DELETE", url, headers=self._headers, accept=(GONE,)
        )

    async def start_scrape(self, key: str, payload: Mapping[str, Any]) -> str:
        answer = await self._post("/scrape", payload, {"Idempotency-Key": key})
        return checked_remote_id(_object(answer).get("job_id"))

    async def find_scrape(self, key: str) -> tuple[bool, str | None]:
        """Whether this worker can be asked by key, and what it has under this one."""
        answer = await self._get("/scrape", params={"key": key}, accept=(GONE, 405))
        told = _object(answer) if answer.status == OK else {}
        if answer.status == GONE and answer.headers.get("retoma-keys") == "known":
            return True, None
        if answer.status != OK or "job_id" not in told:
            return False, None
        return True, checked_remote_id(told["job_id"])

    async def scrape(self, job: str) -> ScrapeSeen:
        answer = await self._get(f"/scrape/{checked_remote_id(job)}", accept=(GONE,))
        if answer.status == GONE:
            return ScrapeSeen("not_found")
        told = _object(answer)
        return ScrapeSeen(
            status=_text(told.get("status")) or "",
            ads_count=_count(told.get("ads_count")),
            progress_pct=_share(told.get("progress_pct")),
            error=_text(told.get("error")) or _text(told.get("error_message")),
            code=_text(told.get("error_code")),
        )

    async def cancel_scrape(self, job: str) -> None:
        await self._post(f"/scrape/{checked_remote_id(job)}/cancel", None, accept=(GONE, BUSY))

    async def _get(self, path: str, **asked: Any) -> Answer:
        return await self._out.get(
            self._policy, self._base + path, headers=self._headers, **asked
        )

    async def _post(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None, **asked: Any
    ) -> Answer:
        every = {**self._headers, **(headers or {})}
        return await self._out.post(
            self._policy, self._base + path, headers=every, json=body, **asked
        )


class WriterClient:
    """One writer, behind its key."""

    def __init__(self, out: Outbound, writer: Writer) -> None:
        self._out = out
        self._base = writer.url.rstrip("/")
        self._headers = {"x-api-key": writer.api_key}
        self._policy = Policy.toward(
            "ads writer", writer.url, deadline=DEADLINE, most_bytes=MOST, answers=WRITER
        )

    async def process(self, payload: Mapping[str, Any]) -> str:
        """Start it; ERROR301 and ERROR302 say that it was not started."""
        try:
            answer = await self._out.post(
                self._policy, f"{self._base}/process", headers=self._headers, json=payload
            )
        except Unsure:
            raise
        except Transient as error:
            raise _in_their_words(error) from error
        return checked_writer_id(_object(answer).get("job_id"))

    async def status(self, job: str) -> WriteSeen:
        answer = await self._out.get(
            self._policy,
            f"{self._base}/status/{checked_writer_id(job)}",
            headers=self._headers,
            accept=(GONE,),
        )
        if answer.status == GONE:
            return WriteSeen("not_found")
        told = _object(answer)
        progress = told.get("progress")
        counts = progress if isinstance(progress, dict) else {}
        failed = told.get("failed_items")
        return WriteSeen(
            status=_text(told.get("status")) or "",
            total=_count(counts.get("total")),
            processed=_count(counts.get("processed")),
            success_count=_count(counts.get("success_count")),
            failed_count=_count(counts.get("failed_count")),
            failed_items=tuple(failed) if isinstance(failed, list) else (),
            error=_text(told.get("error")),
        )

    async def healthy(self) -> bool:
        answer = await self._out.get(self._policy, f"{self._base}/health", accept=(503,))
        return answer.status == OK and _object(answer).get("status") == "healthy"


def checked_writer_id(value: Any) -> str:
    """A writer's id goes into addresses too; it is often a UUID."""
    try:
        return checked_remote_id(value)
    except Permanent as error:
        raise Permanent(str(error), code="ERROR300") from None


def storage_scheme(worker: Worker) -> str:
    """As the worker itself is spoken to: https, but for hosts that the operator has near by."""
    return urlsplit(worker.url).scheme


def _in_their_words(error: Transient) -> Transient:
    code = WRITER_AWAY.get(error.code, error.code)
    return Transient(str(error), code=code, retry_after=error.retry_after)


def _object(answer: Answer) -> dict[str, Any]:
    told = answer.json()
    return told if isinstance(told, dict) else {}


def _text(value: Any) -> str | None:
    return value[:2000] if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
    )


def _share(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 100 else None
