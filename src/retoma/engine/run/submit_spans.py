"""Spans of submissions: below the span that was open where they were asked for."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from retoma.engine.traces import Side, Traces


@dataclass(frozen=True, slots=True)
class SubmitSpans:
    """Opens a span for each submission: below the one that the caller names, else below `here`."""

    traces: Traces | None = None
    here: str | None = None

    @classmethod
    def of(cls, traces: Traces | None) -> "SubmitSpans":
        """Below the span that is open now; without traces nothing is opened."""
        return NO_SPANS if traces is None else cls(traces, traces.here())

    def open(self, kind: str, traceparent: str | None) -> AbstractContextManager[str | None]:
        """The span of one submission; the value of the block is what is kept with the job."""
        if self.traces is None:
            return nullcontext(traceparent)
        return _submit_span(self.traces, kind, traceparent or self.here)


NO_SPANS = SubmitSpans()


@contextmanager
def _submit_span(traces: Traces, kind: str, parent: str | None) -> Iterator[str]:
    with traces.span(f"submit {kind}", Side.PRODUCER, parent=parent, kind=kind) as span:
        yield span.traceparent
