"""The options of one runner, checked when they are given."""

from dataclasses import dataclass

from retoma.engine.ops.loop_watchdog import LOOP_LIMIT
from retoma.engine.ops.retention import FOREVER, Keep
from retoma.engine.ops.schedules import TIMEZONE
from retoma.engine.rules.duration import LONGEST
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.heartbeat import BEAT, BEATS, LEASE
from retoma.words import say

TICK = 5.0  # seconds: everything is looked at this often, with or without a wake-up
GRACE = 25.0  # seconds a leaving runner lets its jobs finish; deploy tools kill after 30
LET_GO = 3.0  # seconds for a handler that was stopped to end; with the grace less than 30
STEP_MEMORY = 256_000_000  # bytes of saved step values that are read back at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """How a runner works. Lengths of time are seconds."""

    name: str = "runner"
    host: str = ""  # what its machine is called; else by its host name
    version: str = ""
    slots: int = 100
    lease: float = LEASE
    beat: float = BEAT
    tick: float = TICK
    grace: float = GRACE
    let_go: float = LET_GO
    loop_limit: float = LOOP_LIMIT  # 0: a handler may hold the loop for ever
    stop_stalled: bool = False
    step_memory: int = STEP_MEMORY
    keep: Keep = FOREVER
    timezone: str = TIMEZONE  # whose days and months costs are counted by

    def __post_init__(self) -> None:
        problems = [what for what, well in self._checks() if not well]
        if problems:
            raise BadInput(
                say("a runner cannot run so: {problems}", problems="; ".join(problems))
            )

    def _checks(self) -> list[tuple[str, bool]]:
        return [
            (f"slots must be at least 1, not {self.slots}", self.slots >= 1),
            (f"beat must be longer than nothing, not {self.beat:g} s", self.beat > 0),
            (
                f"lease must be at least {BEATS} beats, or one late beat loses everything:"
                f" {self.lease:g} s against {self.beat:g} s",
                self.lease >= BEATS * self.beat,
            ),
            (f"tick must be longer than nothing, not {self.tick:g} s", self.tick > 0),
            (f"grace must not be negative: {self.grace:g} s", self.grace >= 0),
            (f"let_go must not be negative: {self.let_go:g} s", self.let_go >= 0),
            (f"loop_limit must not be negative: {self.loop_limit:g} s", self.loop_limit >= 0),
            *(
                (f"{name} must be at most 100 years, not {length:g} s", length <= LONGEST)
                for name, length in self._lengths()
            ),
            (
                f"step_memory must be at least 1 byte, not {self.step_memory}",
                self.step_memory > 0,
            ),
        ]

    def _lengths(self) -> list[tuple[str, float]]:
        names = ("lease", "beat", "tick", "grace", "let_go", "loop_limit")
        return [(name, getattr(self, name)) for name in names]
