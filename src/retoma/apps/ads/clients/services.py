"""The two services of the document as we speak to them (§9); `answers` says what their failures mean."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from retoma.apps.ads.clients.answers import ANSWERS, Endpoint, Met, in_their_words, met
from retoma.apps.ads.clients.passed_over import Without
from retoma.apps.ads.model import Proxy, Worker, Writer, checked_remote_id, session_payload
from retoma.codec import encode
from retoma.engine.isolation.off_loop import off_loop
from retoma.engine.rules.errors import Permanent, Transient, Unsure
from retoma.outbound import Answer, Outbound, Policy
from retoma.secret import Secret, redact_text
from retoma.words import say

OK: Final = 200
GOOD: Final = range(200, 300)
# With which a service that has no such request may refuse it. The others say that it is busy or away.
NO_SUCH_REQUEST: Final = tuple({*range(300, 502)} - {408, 425, 429})
REFUSED: Final = (400, 413, 422)  # what was asked for; they may say why
REASONS: Final = ("detail", "error", "message", "title")  # members under which they say it
REASON: Final = 300  # characters of that
GONE: Final = 404
BUSY: Final = 409
MOST: Final = 1 << 20  # bytes of an answer, without the `data` of a status
MOST_SENT: Final = 64 << 20  # and with it
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
    code: str | None = None


class Client:
    """One service, behind its key."""

    def __init__(self, out: Outbound, purpose: str, url: str, api_key: Secret) -> None:
        self._out = out
        self._base = url.rstrip("/")
        self._headers = {"x-api-key": api_key}
        self._policy = Policy.toward(
            purpose,
            url,
            deadline=DEADLINE,
            most_bytes=MOST,
            most_unpacked=MOST,
            answers=ANSWERS,
        )
        self._wide = replace(self._policy, most_bytes=MOST_SENT, most_unpacked=MOST_SENT)

    async def _ask(
        self,
        endpoint: Endpoint,
        path: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (),
        reads: bool = True,
    ) -> tuple[Answer, dict[str, Any]]:
        """The answer, and the object in it where it is read; else a failure in the document's words."""
        method = endpoint.partition(" ")[0]
        with _told_in_their_words(endpoint):
            answer = await self._out.request(
                self._policy,
                method,
                self._base + path,
                headers={**self._headers, **(headers or {})},
                json=body,
                params=params,
                accept=(*accept, *REFUSED) if body is not None else accept,
            )
            if answer.status in REFUSED and answer.status not in accept:
                why = await _refusal(self._policy.purpose, answer)
                raise Permanent(why, code=met(answer.status))
            return answer, await _object(answer) if reads and answer.status in GOOD else {}

    async def _status(self, endpoint: Endpoint, path: str) -> dict[str, Any] | None:
        """What is said of a job, but for its `data`, however much that is; None of one they lack."""
        url = self._base + path
        with _told_in_their_words(endpoint):
            try:
                body = await self._slim(url)
            except Permanent as error:
                if error.code == Met.NOT_FOUND:
                    return None
                raise
            where = self._policy.purpose
            return await _object(Answer(status=OK, headers={}, url=url, where=where, body=body))

    async def _slim(self, url: str) -> bytes:
        slim = Without("data")
        async with self._out.stream(self._wide, url, headers=self._headers) as pieces:
            async for piece in pieces:
                await off_loop(len(piece), slim.feed, piece)
                if slim.size > MOST:
                    text = say(
                        "{where}: the answer is larger than agreed", where=self._policy.purpose
                    )
                    raise Permanent(text, code="too_large")
        return bytes(slim.kept)


class WorkerClient(Client):
    """One worker."""

    def __init__(self, out: Outbound, worker: Worker) -> None:
        super().__init__(out, "ads worker", worker.url, worker.api_key)
        self.name = worker.name

    async def open_session(self, proxy: Proxy) -> None:
        told = session_payload(proxy)
        inside = {
            name: value.reveal() if isinstance(value, Secret) else value
            for name, value in told["proxy"].items()
        }
        body = {**told, "proxy": inside}
        await self._ask(Endpoint.OPEN_SESSION, "/session", body=body, reads=False)

    async def session_status(self) -> str:
        answer, told = await self._ask(
            Endpoint.SESSION_STATUS, "/session/status", accept=(GONE,)
        )
        if answer.status == GONE:
            return "terminated"
        return _text(told.get("status")) or ""

    async def close_session(self) -> None:
        await self._ask(Endpoint.CLOSE_SESSION, "/session", accept=(GONE,), reads=False)

    async def start_scrape(self, key: str, payload: Mapping[str, Any]) -> str:
        named = {"Idempotency-Key": key}
        _, told = await self._ask(Endpoint.START_SCRAPE, "/scrape", body=payload, headers=named)
        return begun_id(checked_remote_id, told)

    async def find_scrape(self, key: str) -> tuple[bool, str | None]:
        """Whether this worker can be asked by key, and what it has under this one.

        §9.1 has no such request: whatever else a worker answers, it cannot be asked by key."""
        answer, _ = await self._ask(
            Endpoint.FIND_SCRAPE,
            "/scrape",
            params={"key": key},
            accept=NO_SUCH_REQUEST,
            reads=False,
        )
        if answer.status == GONE and answer.headers.get("retoma-keys") == "known":
            return True, None
        if answer.status != OK:
            return False, None
        try:
            return True, checked_remote_id((await _object(answer)).get("job_id"))
        except (Transient, Permanent):
            return False, None

    async def scrape(self, job: str) -> ScrapeSeen:
        told = await self._status(Endpoint.SCRAPE_STATUS, f"/scrape/{checked_remote_id(job)}")
        if told is None:
            return ScrapeSeen("not_found")
        return ScrapeSeen(
            status=_text(told.get("status")) or "",
            ads_count=_count(told.get("ads_count")),
            progress_pct=_share(told.get("progress_pct")),
            error=_text(told.get("error")) or _text(told.get("error_message")),
            code=_text(told.get("error_code")),
        )

    async def cancel_scrape(self, job: str) -> None:
        path = f"/scrape/{checked_remote_id(job)}/cancel"
        await self._ask(Endpoint.CANCEL_SCRAPE, path, accept=(GONE, BUSY), reads=False)


class WriterClient(Client):
    """One writer."""

    def __init__(self, out: Outbound, writer: Writer) -> None:
        super().__init__(out, "ads writer", writer.url, writer.api_key)

    async def process(self, payload: Mapping[str, Any]) -> str:
        """Start it; ERROR301 and ERROR302 say that it was not started."""
        _, told = await self._ask(Endpoint.PROCESS, "/process", body=payload)
        return begun_id(checked_writer_id, told)

    async def status(self, job: str) -> WriteSeen:
        told = await self._status(Endpoint.WRITE_STATUS, f"/status/{checked_writer_id(job)}")
        if told is None:
            return WriteSeen("not_found")
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
            code=_text(told.get("error_code")),
        )

    async def healthy(self) -> bool:
        """Whether it says so; ERROR301 and ERROR302 where it says nothing."""
        answer, told = await self._ask(Endpoint.HEALTH, "/health", accept=(503,))
        return answer.status == OK and told.get("status") == "healthy"


def begun_id(check: Callable[[Any], str], told: Mapping[str, Any]) -> str:
    """The id of what was begun. A service that names none that can be used has begun it perhaps."""
    try:
        return check(told.get("job_id"))
    except Permanent as error:
        raise Unsure(str(error)) from error


def checked_writer_id(value: Any) -> str:
    """A writer's id goes into addresses too; it is often a UUID."""
    try:
        return checked_remote_id(value)
    except Permanent as error:
        raise Permanent(str(error), code="ERROR300") from None


def storage_scheme(worker: Worker) -> str:
    """As the worker itself is spoken to: https, but for hosts that the operator has near by."""
    return urlsplit(worker.url).scheme


@contextmanager
def _told_in_their_words(endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except (Transient, Permanent, Unsure) as error:
        raise in_their_words(endpoint, error) from error


async def _refusal(purpose: str, answer: Answer) -> str:
    """What they say of it, in one line, without what nobody may read."""
    try:
        told = await _object(answer)
        said = next((told[name] for name in REASONS if told.get(name)), None)
        reason = said if isinstance(said, str) else encode(said) if said else ""
    except (Transient, Unsure):
        reason = answer.text()
    plain = " ".join(redact_text(reason).split())[:REASON]
    return f"{purpose}: HTTP {answer.status}" + (f": {plain}" if plain else "")


async def _object(answer: Answer) -> dict[str, Any]:
    told = await answer.json()
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
