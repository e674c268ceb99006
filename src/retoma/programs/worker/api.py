"""The worker over HTTP: sessions, scrapes and their results, as the orchestrator expects them."""

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

TICK: Final = 1.0  # seconds: a scrape that a killed worker left is taken up soon
DOWNLOAD: Final = 300.0  # seconds for results to be fetched
PACE: Final = 1_000.0  # requests a second: one orchestrator asks for all its missions
JOB: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
LANGUAGE: Final = r"^[a-z]{2,3}(-[A-Za-z]{2,4})?$"


class Asked(BaseModel):
    """What nobody reads must not look as if it had been heard."""

    model_config = ConfigDict(extra="forbid")


class ProxyAsked(Asked):
    server: str = Field(min_length=1, max_length=300)
    username: str | None = Field(default=None, max_length=500)
    password: SecretStr | None = Field(default=None, max_length=1_000)


class SessionAsked(Asked):
    force_refresh: bool = True
    proxy: ProxyAsked


class DateRange(Asked):
    start: date
    end: date

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end < self.start:
            raise ValueError(say("ends before it begins"))
        return self


class FiltersAsked(Asked):
    date_range: DateRange
    format: Literal["all", "video", "image"] = "all"
    sort_by: Literal["qtd_ads"] = "qtd_ads"
    languages: list[Annotated[str, Field(pattern=LANGUAGE)]] = Field(
        default_factory=list, max_length=50
    )


class OptionsAsked(Asked):
    max_ads: Literal["all"] | Annotated[int, Field(ge=1, le=MOST_ADS)] = "all"
    batch_size: int = Field(default=BATCH, ge=1, le=10_000)


class ScrapeAsked(Asked):
    filters: FiltersAsked
    options: OptionsAsked = OptionsAsked()

    def wanted(self) -> Filters:
        asked = self.filters
        return Filters(
            start=str(asked.date_range.start),
            end=str(asked.date_range.end),
            format=asked.format,
            languages=tuple(sorted(set(asked.languages))),
        )

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class MisbehaveAsked(Asked):
    session: BadSession | None = None
    scrape: BadScrape | None = None
    now: bool = False  # the session there is, not the next one
    times: int = Field(default=1, ge=0, le=1_000)


Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$"),
]


def build_worker(config: Config, retoma: Retoma, face: Face, *, api_key: str) -> FastAPI:
    """The whole program: its API, its runner, its session."""
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
        bound=Bound(seconds=DOWNLOAD, per_key=PACE, per_address=PACE),
        name="worker",
        slots=2,
        tick=TICK,
        keep=Keep(done=config.keep, dead=config.keep, events=config.keep),
    )


def _session(worker: Worker) -> Any:
    routes = router("session")

    @routes.post("/session")
    async def begin(_: Operator, asked: SessionAsked) -> dict[str, Any]:
        proxy = asked.proxy
        record = await worker.begin_session(
            proxy.server,
            proxy.username or "",
            "" if proxy.password is None else proxy.password.get_secret_value(),
            refresh=asked.force_refresh,
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
    async def begin(_: Operator, asked: ScrapeAsked, key: Key = None) -> dict[str, Any]:
        most = asked.options.max_ads
        job_id = await worker.begin_scrape(
            asked.wanted(),
            most=None if most == ALL else int(most),
            batch=asked.options.batch_size,
            key=key,
            digest=asked.digest,
        )
        return {"job_id": job_id}

    @routes.get("/scrape")
    async def find(_: Operator, key: str) -> dict[str, Any]:
        if not worker.config.keys:  # as a worker answers that has never heard of them
            raise Refusal("method_not_allowed", say("this worker knows of no keys"))
        try:
            return _shown(await worker.scrape(await worker.find_scrape(key)))
        except NotFound as error:
            # Without this nobody could tell it from a worker that has no such address.
            known = {"Retoma-Keys": "known"}
            raise Refusal("not_found", error.args[0], headers=known) from None

    @routes.get("/scrape/{job_id}")
    async def status(_: Operator, job_id: str) -> dict[str, Any]:
        return _shown(await worker.scrape(job_id))

    @routes.post("/scrape/{job_id}/cancel")
    async def cancel(_: Operator, job_id: str) -> dict[str, Any]:
        return _shown(await worker.cancel_scrape(job_id))

    return routes


def _bad(worker: Worker) -> list[Any]:
    if not isinstance(worker, BadWorker):
        return []
    routes = router("misbehave")

    @routes.post("/misbehave")
    async def misbehave(_: Operator, asked: MisbehaveAsked) -> dict[str, Any]:
        if asked.times == 0:
            worker.disarm()
        elif asked.now and asked.session is not None:
            await worker.spoil_session(asked.session)
        else:
            worker.arm(asked.session, asked.scrape, asked.times)
        return asked.model_dump()

    return [routes]


def _results(worker: Worker) -> Any:
    routes = router("results")

    @routes.get("/{job_id}/{name}", dependencies=[Anybody], response_class=FileResponse)
    async def results(request: Request, job_id: str, name: str) -> Response:
        _check_token(request, worker.config)
        file = _file(worker.config, job_id, name)
        if file is None or not file.is_file():
            raise NotFound(say("there is nothing at this address"))
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
            say("results are for those who bring their token, as Authorization: Bearer"),
            headers={"WWW-Authenticate": 'Bearer realm="results"'},
        )


def _file(config: Config, job_id: str, name: str) -> Path | None:
    if not JOB.fullmatch(job_id) or name != f"{job_id}_results.json":
        return None
    return results_file(config.folder, job_id)


def _shown(seen: Seen) -> dict[str, Any]:
    told: dict[str, Any] = {
        "job_id": seen.job_id,
        "status": seen.status,
        "ads_count": seen.ads_count,
        "progress_pct": seen.progress_pct,
    }
    if seen.error is not None:
        told |= {"error": seen.error, "error_code": seen.error_code}
    if seen.url is not None:
        told["results_url"] = seen.url
    return told
