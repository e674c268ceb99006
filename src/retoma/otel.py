"""Export spans to OpenTelemetry. Imported only if tracing is on: `pip install 'retoma[otel]'`.

A span carries the job, kind, epoch and step, the host of a call and how it ended: only codes and names,
no content and no error messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import (
    SpanKind,
    Status,
    StatusCode,
    format_span_id,
    format_trace_id,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from retoma.engine.rules.errors import BadInput
from retoma.engine.traces import Side, Span
from retoma.words import say

SIDES = {side: SpanKind[side.name] for side in Side}
HEADER = "traceparent"
FLUSH = 3_000  # milliseconds for the last spans of a process, so that a missing collector delays no exit
OTLP, CONSOLE = "otlp", "console"


class OpenTelemetry:
    """Writes the spans of retoma to a tracer provider."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        """`provider`: None for the global one of this process."""
        self._provider = provider
        self._tracer = trace.get_tracer("retoma", tracer_provider=provider)
        self._format = TraceContextTextMapPropagator()

    @contextmanager
    def span(
        self,
        name: str,
        side: Side = Side.INTERNAL,
        *,
        parent: str | None = None,
        **facts: Any,
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            name,
            context=self._below(parent),
            kind=SIDES[side],
            attributes=_named(facts),
            record_exception=False,  # its message may hold content
            set_status_on_exception=False,
        ) as opened:
            span = OpenSpan(opened)
            try:
                yield span
            except BaseException as error:
                span.fail(getattr(error, "code", None) or type(error).__name__)
                raise

    def here(self) -> str | None:
        return _traceparent(trace.get_current_span())

    def flush(self) -> None:
        if isinstance(self._provider, TracerProvider):
            self._provider.force_flush(FLUSH)

    def _below(self, parent: str | None) -> Context | None:
        return None if parent is None else self._format.extract({HEADER: parent})


class OpenSpan:
    """A span that is open."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        return _traceparent(self._span) or ""

    def tell(self, **facts: Any) -> None:
        self._span.set_attributes(_named(facts))

    def fail(self, code: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR, code))


def exporting(where: str, *, service: str = "retoma") -> OpenTelemetry:
    """Make a tracer that exports to `otlp`, configured by OTEL_EXPORTER_OTLP_ENDPOINT and its like, or to
    `console`."""
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service}))
    provider.add_span_processor(BatchSpanProcessor(_exporter(where)))
    return OpenTelemetry(provider)


def _exporter(where: str) -> SpanExporter:
    if where == CONSOLE:
        return ConsoleSpanExporter()
    if where != OTLP:
        raise BadInput(say("traces can go to otlp or console, not {where!r}", where=where))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 — slow to import
        OTLPSpanExporter,
    )

    return OTLPSpanExporter()


def _traceparent(span: trace.Span) -> str | None:
    context = span.get_span_context()
    if not context.is_valid:
        return None
    ids = f"{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}"
    return f"00-{ids}-{int(context.trace_flags):02x}"


def _named(facts: dict[str, Any]) -> dict[str, Any]:
    return {f"retoma.{name}": value for name, value in facts.items() if value is not None}
