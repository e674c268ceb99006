"""The worker's HTTP API: sessions, scrapes and results, as the ads orchestrator expects them."""

import hashlib
import hmac
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from fastapi import FastAPI, Header, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from starlette.responses import FileResponse, Response

from retoma.engine.ops.retention import Keep
from retoma.engine.rules.errors import NotFound
from retoma.library import Retoma
from retoma.outbound import Outbound
from retoma.programs.serving import build_service
from retoma.programs.worker.misbehave import BadScrape, BadSession, BadWorker
from retoma.programs.worker.model import ALL, BATCH, MOST_ADS, Filters
from retoma.programs.worker.results import results_file
from retoma.programs.worker.scrape import register
from retoma.programs.worker.scrapes import Seen
from retoma.programs.worker.worker import Config, Worker
from retoma.web import Anybody, Bound, Face, Operator, Refusal, router
from retoma.words import say

TICK: Final = 1.0  # seconds: a restarted worker resumes its scrape soon
DOWNLOAD: Final = 300.0  # seconds for a download of results
MOST_REQUESTS: Final = 1_000.0  # requests per second: one orchestrator polls all its missions
JOB: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
LANGUAGE: Final = r"^[a-z]{2,3}(-[A-Za-z]{2,4})?$"


class StrictModel(BaseModel):
    """A body that rejects unknown fields, so that a typo is not ignored."""

    model_config = ConfigDict(extra="forbid")


class ProxyBody(StrictModel):
    server: str = Field(min_length=1, max_length=300)
    username: str | None = Field(default=None, max_length=500)
    password: SecretStr | None = Field(default=None, max_length=1_000)


class SessionBody(StrictModel):
    force_refresh: bool = True
    proxy: ProxyBody


class DateRange(StrictModel):
    start: date
    end: date

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.end < self.start:
            raise ValueError(say("the end is before the start"))
        return self


class FiltersBody(StrictModel):
    date_range: DateRange
    format: Literal["all", "video", "image"] = "all"
    sort_by: Literal["qtd_ads"] = "qtd_ads"
    languages: list[Annotated[str, Field(pattern=LANGUAGE)]] = Field(
        default_factory=list, max_length=50
    )


class OptionsBody(StrictModel):
    max_ads: Literal["all"] | Annotated[int, Field(ge=1, le=MOST_ADS)] = "all"
    batch_size: int = Field(default=BATCH, ge=1, le=10_000)


class ScrapeBody(StrictModel):
    filters: FiltersBody
    options: OptionsBody = OptionsBody()

    def to_filters(self) -> Filters:
        body = self.filters
        return Filters(
            start=str(body.date_range.start),
            end=str(body.date_range.end),
            format=body.format,
            languages=tuple(sorted(set(body.languages))),
        )

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class MisbehaveBody(StrictModel):
    session: BadSession | None = None
    scrape: BadScrape | None = None
    now: bool = False  # the open session, not the next one
    times: int = Field(default=1, ge=0, le=1_000)


Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$"),
]


def build_worker(config: Config, retoma: Retoma, face: Face, *, api_key: str) -> FastAPI:
    """Build the program: its API, its runner and its session."""
    config.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    make = BadWorker if config.misbehaves else Worker
    out = Outbound(clock=retoma.clock, private=config.private)
    worker = make(config, retoma, out)
    register(worker)
    return build_service(
        "scrape worker",
        retoma,
        face,
        api_key=api_key,
        routers=[_session(worker), _scrape(worker), *_bad(worker), _results(worker)],
        lives=[lambda: out, worker.alive],
        bound=Bound(seconds=DOWNLOAD, per_key=MOST_REQUESTS, per_address=MOST_REQUESTS),
        name="worker",
        slots=2,
        tick=TICK,
        keep=Keep(done=config.keep, dead=config.keep, events=config.keep),
    )


def _session(worker: Worker) -> Any:
    routes = router("session")

    @routes.post("/session")
    async def begin(_: Operator, body: SessionBody) -> dict[str, Any]:
        proxy = body.proxy
        record = await worker.begin_session(
            proxy.server,
            proxy.username or "",
            "" if proxy.password is None else proxy.password.get_secret_value(),
            refresh=body.force_refresh,
        )
        return {"session_id": record.id, "status": record.state}

    @routes.delete("/session")
    async def end(_: Operator) -> dict[str, Any]:
        await worker.end_session()
        return {"status": (await worker.session_state())[0]}

    @routes.get("/session/status")
    async def status(_: Operator) -> dict[str, Any]:
        state, error = await worker.session_state()
        return {"status": state} if error is None else {"status": state, "error": error}

    return routes


def _scrape(worker: Worker) -> Any:
    routes = router("scrape")

    @routes.post("/scrape")
    async def begin(_: Operator, body: ScrapeBody, key: Key = None) -> dict[str, Any]:
        most = body.options.max_ads
        job_id = await worker.begin_scrape(
            body.to_filters(),
            most=None if most == ALL else int(most),
            batch=body.options.batch_size,
            key=key,
            digest=body.digest,
        )
        return {"job_id": job_id}

    @routes.get("/scrape")
    async def find(_: Operator, key: str) -> dict[str, Any]:
        if not worker.config.keys:  # as a worker without support for keys answers
            raise Refusal("method_not_allowed", say("this worker does not support keys"))
        try:
            return _document(await worker.scrape(await worker.find_scrape(key)))
        except NotFound as error:
            # Distinguishes it from the 404 of a worker without this route.
            known = {"Retoma-Keys": "known"}
            raise Refusal("not_found", error.args[0], headers=known) from None

    @routes.get("/scrape/{job_id}")
    async def status(_: Operator, job_id: str) -> dict[str, Any]:
        return _document(await worker.scrape(job_id))

    @routes.post("/scrape/{job_id}/cancel")
    async def cancel(_: Operator, job_id: str) -> dict[str, Any]:
        return _document(await worker.cancel_scrape(job_id))

    return routes


def _bad(worker: Worker) -> list[Any]:
    if not isinstance(worker, BadWorker):
        return []
    routes = router("misbehave")

    @routes.post("/misbehave")
    async def misbehave(_: Operator, body: MisbehaveBody) -> dict[str, Any]:
        if body.times == 0:
            worker.disarm()
        elif body.now and body.session is not None:
            await worker.spoil_session(body.session)
        else:
            worker.arm(body.session, body.scrape, body.times)
        return body.model_dump()

    return [routes]


def _results(worker: Worker) -> Any:
    routes = router("results")

    @routes.get("/{job_id}/{name}", dependencies=[Anybody], response_class=FileResponse)
    async def results(request: Request, job_id: str, name: str) -> Response:
        _check_token(request, worker.config)
        file = _file(worker.config, job_id, name)
        if file is None or not file.is_file():
            raise NotFound(say("there are no results at this address"))
        return FileResponse(file, media_type="application/json")

    return routes


def _check_token(request: Request, config: Config) -> None:
    token = config.results_token
    if token is None:
        return
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode(), token.reveal().encode()):
        raise Refusal(
            "sign_in",
            say("results need their token: send it as Authorization: Bearer"),
            headers={"WWW-Authenticate": 'Bearer realm="results"'},
        )


def _file(config: Config, job_id: str, name: str) -> Path | None:
    if not JOB.fullmatch(job_id) or name != f"{job_id}_results.json":
        return None
    return results_file(config.folder, job_id)


def _document(seen: Seen) -> dict[str, Any]:
    document: dict[str, Any] = {
        "job_id": seen.job_id,
        "status": seen.status,
        "ads_count": seen.ads_count,
        "progress_pct": seen.progress_pct,
    }
    if seen.error is not None:
        document |= {"error": seen.error, "error_code": seen.error_code}
    if seen.url is not None:
        document["results_url"] = seen.url
    return document
