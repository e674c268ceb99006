"""What a handler may use while it runs: the seam between its context and the runner."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from retoma.engine.isolation.isolate import Limits
from retoma.engine.limits.breakers import Guard
from retoma.engine.limits.rates import Permit
from retoma.engine.rules.cost import Bill, Offer, Payer
from retoma.engine.rules.job import Item, Scope, StepId
from retoma.engine.rules.states import StepState
from retoma.engine.store import Evidence
from retoma.engine.store.reuse import Found
from retoma.engine.writing.group_writer import Answer

Values = AbstractAsyncContextManager[Mapping[StepId, str]]


class HandlerServices(Protocol):
    """Saves, reads, pays, takes and frees for one claim."""

    def save(
        self,
        step: StepId,
        value: str | None,
        state: StepState = StepState.SAVED,
        bill: Bill | None = None,
    ) -> Answer: ...
    def reading(self, steps: Sequence[StepId], size: int) -> Values:
        """The values of saved steps, of so many bytes in all, to be dropped with the block."""

    async def write(self, step: StepId, fn: Callable[[Any], Any], type_: Any) -> str:
        """Do it in a transaction of the database that also saves the step; `type_`: of its value."""

    async def share(
        self, fn: Callable[[Any, Sequence[Any]], Any], about: Any, size: int
    ) -> Any:
        """Do it in a transaction of the database together with others' of this moment."""

    def pays(self, step: str, provider: str) -> None: ...
    def paid(self, step: str) -> Iterable[str] | None:
        """Whom this step has been seen to pay."""

    async def afford(self, providers: Iterable[str]) -> None:
        """Return if no budget is spent that these would be paid from."""

    async def look_up(self, offer: Offer) -> Found | None:
        """What another job has made of the same."""

    @property
    def payer(self) -> Payer:
        """Under what names costs are counted."""

    def report(self, progress: float | None, note: str | None) -> Answer: ...
    async def attach(self, evidence: Evidence) -> None: ...
    def permit(
        self,
        key: str,
        n: int,
        *,
        adaptive: bool,
        working: Callable[[], AbstractContextManager[None]],
    ) -> Permit: ...
    def guard(self, name: str) -> Guard: ...
    async def take(self, pool: str, scope: Scope, shuns: str | None = None) -> Item: ...
    def free(self, item: Item, *, worked: bool | None, by: str | None = None) -> Answer: ...
    def free_to_start(self) -> bool:
        """Whether something may be started under this lease, now."""

    async def may_start(self) -> None:
        """Return when something may be started under this lease; raise when never again."""

    async def pause(self, seconds: float) -> None: ...

    @property
    def limits(self) -> Limits:
        """What a child of this kind may use."""

    @property
    def let_go(self) -> float:
        """Seconds for a story that was stopped to end."""

    def overdue(self, late: str) -> None:
        """A step is past its time and does not let go."""

    def cancel_wanted(self) -> None:
        """Somebody wants the job canceled: this step boundary is where it ends."""
