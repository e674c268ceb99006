"""One trace from the request to the last call outside, and nothing at all where nobody traces."""

import asyncio
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from retoma import BadInput, Context, Permanent, Retoma, logs, settings
from retoma.bootstrap import build_traces
from retoma.engine import traces as port
from retoma.engine.rules.states import State
from retoma.otel import OpenTelemetry, exporting
from retoma.outbound import Outbound, Policy
from retoma.secret import known
from tests import nursery
from tests.engine.aids import AT_ONCE, rows
from tests.outbound.fakes import answer, serving
from tests.web.aids import application, world

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Kept:
    """A tracer of this test's own, and what it was told."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.traces = OpenTelemetry(provider)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {each.name: each for each in self._exporter.get_finished_spans()}


def id_of(span: ReadableSpan) -> str:
    return f"{span.context.span_id:016x}"


def parent_of(span: ReadableSpan) -> str | None:
    return None if span.parent is None else f"{span.parent.span_id:016x}"


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    out = io.StringIO()
    logs.configure("debug", out)
    yield out
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level
    for value in list(known._values):
        known._forget(value)


def shop(port_: int, **how: Any) -> Policy:
    return Policy.toward("shop", f"http://127.0.0.1:{port_}", private=True, **how)


async def test_a_trace_goes_from_the_request_through_submit_claim_and_step_to_the_call(
    database_url,
):
    kept = Kept()
    async with serving() as server, world(database_url) as house, Outbound() as out:
        house.app.traces = kept.traces

        @house.app.job
        async def buy(ctx: Context) -> int:
            async def ask() -> int:
                return (await out.get(shop(server.port), f"{server.url}/x")).status

            return await ctx.step("ask", ask)

        house.site.state.house.applications = [application(house.app)]
        made = await house.operator.post(
            "/api/jobs", json={"kind": "buy"}, headers={"traceparent": PARENT}
        )
        await house.app.run(until_idle=True)
        assert {State.DONE: 1} == await house.app.insights.counts()

    submit, claim, step, call = (
        kept.spans[name] for name in ("submit buy", "claim buy", "step ask", "GET 127.0.0.1")
    )
    assert TRACE == made.headers["x-trace-id"]
    assert {TRACE} == {f"{each.context.trace_id:032x}" for each in kept.spans.values()}
    assert [PARENT.split("-")[2], id_of(submit), id_of(claim), id_of(step)] == [
        parent_of(each) for each in (submit, claim, step, call)
    ]
    assert [SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.INTERNAL, SpanKind.CLIENT] == [
        each.kind for each in (submit, claim, step, call)
    ]
    [asked] = server.asked
    assert f"00-{TRACE}-{id_of(call)}-01" == asked.headers["traceparent"]
    assert ("done", made.json()["id"]) == (
        claim.attributes["retoma.end"],  # type: ignore[index]
        claim.attributes["retoma.job"],  # type: ignore[index]
    )


async def test_a_step_that_is_read_back_has_no_span_and_a_failure_has_its_code(database_url):
    kept = Kept()
    async with Retoma(database_url, traces=kept.traces) as app:
        tries = []

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context) -> None:
            async def once() -> None:
                tries.append(1)

            await ctx.step("once", once)
            raise Permanent("a CANARY in its message", code="SHOP")

        with kept.traces.span("mine") as mine:
            await app.submit(work)
        await app.submit_many(work, [None])
        await app.run(until_idle=True)
        first = await app.retry(1)
        await app.run(until_idle=True)

    assert (2, 2) == (len(tries), first.generation)
    spans = kept._exporter.get_finished_spans()
    assert 2 == sum(each.name == "step once" for each in spans)
    claims = [each for each in spans if each.name == "claim work"]
    assert 3 == len(claims)
    assert {(StatusCode.ERROR, "SHOP")} == {
        (each.status.status_code, each.status.description) for each in claims
    }
    # Below the span that was open where it was submitted; the batch began a trace of its own.
    submits = [each for each in spans if each.name == "submit work"]
    assert mine.traceparent.split("-")[2] == parent_of(submits[0])
    assert parent_of(submits[1]) is None
    assert "CANARY" not in "".join(each.to_json() for each in spans)


async def test_the_traceparent_of_a_request_is_kept_with_the_job_though_nobody_traces(
    database_url,
):
    async with world(database_url) as house:
        for headers in ({"traceparent": PARENT}, {}, {"traceparent": "00-zz"}):
            await house.operator.post(
                "/api/jobs", json={"kind": "count", "payload": 1}, headers=headers
            )
        database = await house.app.database()
        found = await rows(database, "SELECT traceparent, correlation FROM jobs ORDER BY id")

    (first, trace), *others = found
    assert (PARENT, TRACE) == (first, trace)
    for parent, correlation in others:
        assert correlation == parent.split("-")[1] != TRACE


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "x",
        PARENT[:-1],
        f"ff{PARENT[2:]}",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        PARENT + "-x",
    ],
)
async def test_a_traceparent_that_is_none_is_refused(database_url, wrong):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context) -> None: ...

        with pytest.raises(BadInput, match="traceparent"):
            await app.submit(work, traceparent=wrong)
        assert [] == await app.jobs()


async def test_where_a_redirect_leads_elsewhere_our_span_stays_behind(database_url):
    kept = Kept()
    async with serving() as other:
        away = answer(302, location=f"http://localhost:{other.port}/")
        async with serving(away) as server, Outbound() as out, Retoma(database_url) as app:
            app.traces = kept.traces
            both = Policy(
                purpose="shop",
                hosts={"127.0.0.1", "localhost"},
                private={"127.0.0.1", "localhost"},
                schemes={"http"},
                ports={server.port, other.port},
                redirects=1,
            )

            @app.job
            async def buy(ctx: Context) -> int:
                return (await out.get(both, server.url)).status

            await app.submit(buy)
            await app.run(until_idle=True)

    assert "traceparent" in server.asked[0].headers
    assert "traceparent" not in other.asked[0].headers


async def test_one_id_is_on_every_line_from_the_request_to_the_last_of_the_call(
    database_url,
    told,
):
    async with serving() as server, world(database_url) as house, Outbound() as out:

        @house.app.job
        async def buy(ctx: Context) -> int:
            async def ask() -> int:
                ctx.log.info("asking")
                structlog.get_logger("somebody.elses").info("theirs")
                return (await out.get(shop(server.port), f"{server.url}/x")).status

            return await ctx.step("ask", ask)

        house.site.state.house.applications = [application(house.app)]
        made = await house.operator.post("/api/jobs", json={"kind": "buy"})
        await house.app.submit("count", 1)  # nobody's request
        await house.app.run(until_idle=True)
        events = (await house.viewer.get("/api/jobs/1")).json()

    trace = made.headers["x-trace-id"]
    lines = [json.loads(line) for line in told.getvalue().splitlines()]
    mine = [line["event"] for line in lines if line.get("correlation") == trace]
    assert ["request", "asking", "theirs", "outbound.answered", "job.settled"] == mine
    assert trace == events["correlation"]
    others = [line for line in lines if line.get("job") == 2]
    assert others
    assert all(line.get("correlation") is None for line in others)


APP = """
import os
from retoma import Context, Retoma

app = Retoma(os.environ["RETOMA_DATABASE_URL"])


@app.job
async def add(ctx: Context, n: int) -> int:
    return n + 1
"""


def test_a_runner_sends_its_last_spans_before_it_is_gone(database_url, tmp_path):
    """A process of its own, told by a setting, and a collector that listens."""
    (tmp_path / "adds.py").write_text(APP)
    got: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    async def submit() -> None:
        async with Retoma(database_url) as app:
            app.job(name="add")(add)
            await app.submit("add", 1, traceparent=PARENT)

    asyncio.run(submit())
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        try:
            nursery.run(
                [sys.executable, "-m", "retoma", "runner", "--app", "adds:app", "--until-idle"],
                cwd=tmp_path,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    "RETOMA_DATABASE_URL": database_url,
                    "RETOMA_TRACES": "otlp",
                    "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
                    "NO_PROXY": "127.0.0.1",
                },
                check=True,
                timeout=100,
                capture_output=True,
            )
        finally:
            collector.shutdown()
            thread.join()

    sent = b"".join(got)
    assert b"claim add" in sent
    assert bytes.fromhex(TRACE) in sent


async def add(ctx: Context, n: int) -> int:
    return n + 1


# — where nobody traces —


async def test_without_traces_nothing_of_them_is_called(database_url):
    """Not one function of the port, for any number of submits, claims, steps and calls."""
    calls: list[str] = []

    def spy(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == port.__file__:
            calls.append(frame.f_code.co_name)

    async with serving() as server, Outbound() as out, Retoma(database_url) as app:

        @app.job
        async def buy(ctx: Context, n: int) -> int:
            async def ask() -> int:
                return (await out.get(shop(server.port), server.url)).status

            return await ctx.step("ask", ask)

        await app.submit(buy, 0)
        sys.setprofile(spy)
        try:
            await app.submit_many(buy, range(1, 20))
            await app.run(until_idle=True)
        finally:
            sys.setprofile(None)
        assert {State.DONE: 20} == await app.insights.counts()

    assert [] == calls


@pytest.mark.parametrize(
    ("modules", "unasked"),
    [
        ("retoma, retoma.bootstrap, retoma.cli.runner, retoma.outbound", "opentelemetry"),
        ("retoma.cli.serve", "retoma.otel"),
        ("retoma.cli.serve", "opentelemetry.sdk"),  # FastAPI itself imports the rest
    ],
)
def test_nobody_imports_it_unasked(modules, unasked):
    code = (
        f"import sys, {modules};"
        f"print([each for each in sys.modules if each.startswith({unasked!r})])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.strip()


def test_a_setting_says_where_spans_go(monkeypatch):
    assert build_traces(settings.read()) is None
    monkeypatch.setenv("RETOMA_TRACES", "somewhere")
    with pytest.raises(BadInput, match="RETOMA_TRACES"):
        settings.read()
    monkeypatch.delenv("RETOMA_TRACES")
    with pytest.raises(BadInput, match="otlp or console"):
        exporting("somewhere")
    for where in ("otlp", "console"):
        made = build_traces(settings.read(traces=where))
        assert isinstance(made, OpenTelemetry)
        made._provider.shutdown()  # type: ignore[union-attr]


def test_what_is_not_installed_is_said_so():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from retoma import settings\nfrom retoma.bootstrap import build_traces\n"
        "build_traces(settings.read(traces='otlp'))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert "pip install 'retoma[otel]'" in done.stderr


def test_spans_of_steps_at_once_do_not_mix():
    kept = Kept()

    async def one(name: str) -> str | None:
        with kept.traces.span(name):
            await asyncio.sleep(0)
            return kept.traces.here()

    async def both() -> list[str | None]:
        with kept.traces.span("above"):
            return list(await asyncio.gather(one("a"), one("b")))

    a, b = asyncio.run(both())

    assert a != b
    assert {id_of(kept.spans["above"])} == {parent_of(kept.spans[each]) for each in "ab"}
    assert kept.traces.here() is None
