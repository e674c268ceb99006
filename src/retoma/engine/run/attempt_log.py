"""Log lines about one attempt: each names the job, its kind and what the kind adds."""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from retoma.engine.handlers.kinds import Kind
from retoma.engine.rules.job import Claim
from retoma.engine.rules.states import State
from retoma.engine.run.runner_services import RunnerServices

NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class AttemptLog:
    """Of one attempt; nothing is bound before a line is written."""

    __slots__ = ("_began", "_claim", "_fields", "_kind", "_runner")

    def __init__(self, claim: Claim, kind: Kind, runner: RunnerServices) -> None:
        self._claim = claim
        self._kind = kind
        self._runner = runner
        self._began = runner.clock.now()
        self._fields: Mapping[str, Any] | None = None  # computed for the first line

    def bind(self, status: str) -> Any:
        """A logger with all fields of a line about a job."""
        fields = self.kind_fields()
        bound = self._runner.log.bind(**fields) if fields else self._runner.log
        return bound.bind(
            **self._claim.log_fields,
            status=str(status),
            duration_ms=round(self._ms(), 1),
        )

    def settled(self, state: State) -> None:
        if self._kind.log_settled is not None:
            line = self.bind(state)
            with suppress(Exception):  # the line itself matters more, and the end most of all
                line = line.bind(**self._kind.log_settled(self._claim.job, state, self._ms()))
            line.info("job.settled")
        elif self._runner.debugging:
            self.bind(state).debug("job.settled")

    def kind_fields(self) -> Mapping[str, Any]:
        """What its kind wants in every line; nothing where the payload cannot be read."""
        if self._kind.log_fields is None:
            return NO_FIELDS
        if self._fields is None:
            claim = self._claim
            try:
                payload = self._kind.payload(claim.payload)
                self._fields = self._kind.log_fields(payload, claim.failures)
            except Exception:  # noqa: BLE001 — the line itself matters more
                self._fields = NO_FIELDS
        return self._fields

    def _ms(self) -> float:
        return (self._runner.clock.now() - self._began) * 1000
