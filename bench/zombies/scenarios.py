"""The scenarios of the board, as data: one job each.

Two workers have parts in them. The *first* takes every job, is stopped (SIGSTOP) for longer than its lease and
is woken again; the *second* takes the jobs over meanwhile. Only the second one has a right to write then.
"""

from dataclasses import dataclass
from enum import StrEnum

FIRST, SECOND, THIRD = (
    "first",
    "second",
    "third",
)  # workers; the third replaces the first in the end
PLAIN, RETRIED, STEPS = (
    "plain",
    "retried",
    "steps",
)  # kinds of job: by what happens if they fail
JOB, ONE, TWO = "job", "one", "two"  # parts of a job: its body, or its steps

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
GONE = "gone"  # the system knows nothing of it any more


class Moment(StrEnum):
    """When the first worker wakes."""

    AT_WORK = "the second is at work on the job"
    SAVED = "the second has saved step one and is in step two"
    ENDED = "the second has ended the job"
    NEVER = "nobody takes the job over"
    KILLED = "the worker is killed, it does not wake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One job and the moment at which its first worker goes on with it."""

    name: str
    title: str  # a row of the page
    kind: str = PLAIN
    moment: Moment = Moment.AT_WORK
    fails: bool = False  # the first worker's run raises
    state: str = DONE  # how the job ends if nothing stale is accepted
    # How often each part runs, if nothing runs in vain.
    runs: tuple[tuple[str, int], ...] = ((JOB, 2),)

    @property
    def part(self) -> str:
        """The part in which the first worker is stopped."""
        return ONE if self.kind == STEPS and self.moment is not Moment.KILLED else JOB

    @property
    def value(self) -> str | list[str] | None:
        """The result that has to stay: the second worker's."""
        if self.state != DONE or self.moment is Moment.KILLED:
            return None
        return [SECOND, SECOND] if self.kind == STEPS else SECOND


KILL = Scenario(
    name="kill",
    title="is killed with -9 after a first effect and a second one, but before completion",
    kind=STEPS,
    moment=Moment.KILLED,
    runs=((ONE, 1), (TWO, 2)),
)

SCENARIOS = (
    Scenario(
        name="result_during",
        title="wakes while the other is at work, and completes the job",
    ),
    Scenario(
        name="result_after",
        title="wakes after the other has ended the job, and completes it with another result",
        moment=Moment.ENDED,
    ),
    Scenario(
        name="step_during",
        title="saves a step that the other is in",
        kind=STEPS,
        runs=((ONE, 2), (TWO, 1)),
    ),
    Scenario(
        name="step_after",
        title="saves a step, with another value, that the other has saved",
        kind=STEPS,
        moment=Moment.SAVED,
        runs=((ONE, 2), (TWO, 1)),
    ),
    Scenario(
        name="failure_during",
        title="fails for good while the other is at work",
        fails=True,
    ),
    Scenario(
        name="failure_after",
        title="fails for good after the other has ended the job",
        moment=Moment.ENDED,
        fails=True,
    ),
    Scenario(
        name="retry_during",
        title="fails, to be retried, while the other is at work",
        kind=RETRIED,
        fails=True,
    ),
    Scenario(
        name="retry_after",
        title="fails, to be retried, after the other has ended the job",
        kind=RETRIED,
        moment=Moment.ENDED,
        fails=True,
    ),
    Scenario(
        name="cancel",
        title="was cancelled while it was stopped, and completes the job",
        moment=Moment.NEVER,
        state=CANCELLED,
        runs=((JOB, 1),),
    ),
)
BY_NAME = {each.name: each for each in (*SCENARIOS, KILL)}
