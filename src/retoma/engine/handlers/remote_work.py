"""What a story has at work on others' machines: its calls, and when it is left to wait for them."""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import Any, Never

from retoma.codec import decode, encode
from retoma.engine.handlers.branches import Branches, first_due
from retoma.engine.handlers.remote import Call, Remote
from retoma.engine.handlers.steps import Steps
from retoma.engine.rules.errors import DuplicateStep
from retoma.engine.rules.job import REMOTE, Memory, SavedStep, StepId
from retoma.engine.rules.outcome import Park, Snooze, Unwound
from retoma.engine.rules.states import StepState

NOTE = 500  # characters of what several of them tell

Words = dict[str, tuple[float | None, str | None]]


class Elsewhere:
    """Of one attempt; made when its story first asks for remote work, which few do."""

    def __init__(self, steps: Steps, memory: Memory, database_id: str) -> None:
        claim = steps.claim
        self._steps = steps
        self.memory = memory
        self.turn = [claim.generation, claim.failures]
        self.left: Snooze | Park | None = None  # what the story was left for, as a whole
        self._prefix = f"{database_id}-{claim.job}-{claim.fresh_from}"
        self._branches = Branches(self._at_work, self._leave_story)
        self._calls: dict[StepId, Call] = {}  # told of in this claim
        self._words: Words = {}  # theirs, to be told of

    def working(self) -> AbstractContextManager[None]:
        return self._branches.working()

    def close(self) -> None:
        self._branches.close()

    def call(self, step: StepId, remote: Remote, payload: Any) -> Coroutine[Any, Any, Any]:
        try:
            self._steps.ask(step)
        except DuplicateStep as error:
            # Raised when it is awaited: what else was made for the same gather is awaited too.
            return _raise(error)
        # Known from here on, also where its task gets no turn before the story ends.
        call = self._calls[step] = Call(self, remote, step.name, step.version, self._prefix)
        return self._value_of(step, call, remote, payload)

    async def _value_of(self, step: StepId, call: Call, remote: Remote, payload: Any) -> Any:
        if self._steps.over:
            raise asyncio.CancelledError  # a task that the story forgot
        self._steps.tasks.join()
        try:
            with self.working():
                saved = self._steps.saved(step)
                if saved is not None:
                    await call.close()
                    return await self._steps.read(
                        saved, lambda text: decode(text, remote.returns)
                    )
                return decode(await call.result(payload), remote.returns)
        except BaseException:
            self._steps.forget((step,))
            raise

    # — what a call asks for —

    async def keep(self, step: StepId, text: str | None, state: StepState) -> None:
        await self._steps.keep(step, text, state)

    async def may_go_out(self) -> None:
        await self._steps.may_go_out()

    def tell(self, name: str, share: float | None, note: str | None) -> None:
        self._words[name] = share, note

    def holds_remote_work(self) -> bool:
        return self._steps.live_elsewhere()

    def remote_steps(self) -> list[SavedStep]:
        return self._steps.of_remote_work()

    async def leave(self, wish: Snooze | Park | None) -> Never:
        await self._report()
        tasks = self._steps.tasks
        if tasks.story is None or tasks.story_is_alone():
            raise Unwound(first_due([wish]))
        await self._branches.wait(wish)

    async def pause(self, seconds: float) -> None:
        await self._steps.services.pause(seconds)

    async def cancel_now(self) -> Never:
        self._steps.services.cancel_wanted()
        await asyncio.Event().wait()  # for the cancellation that this was
        raise asyncio.CancelledError

    # — leaving the story —

    async def _report(self) -> None:
        """Only what is new: the same words again are no progress, and must not hide a stall."""
        told = _together(self._words)
        if told is not None and told != (self.memory.progress, self.memory.note):
            await self._steps.report(*told)

    def _at_work(self) -> "list[asyncio.Task[Any] | None]":
        return list(self._steps.under_way.values())

    def _leave_story(self, wish: Snooze | Park) -> None:
        story = self._steps.tasks.story
        if story is not None and not self._steps.over:
            self.left = wish
            self._steps.over = True
            story.cancel()

    # — once the story has ended —

    async def stop(self) -> Snooze | Park | None:
        """What it left behind is stopped; None when it is seen to be over."""
        left: list[Snooze | Park | None] = []
        for step in [step.id for step in self._steps.known.values() if step.live_elsewhere]:
            call = self._calls.get(StepId(step.name.removeprefix(REMOTE), step.version))
            wish = first_due([]) if call is None else await call.ended()
            left += [] if wish is None else [wish]
        return first_due(left) if left else None

    async def forget_failures(self) -> None:
        """A person was asked, and may have put right what failed: then it is sent again."""
        for step in self._steps.of_remote_work():
            told = decode(step.value or "null")
            if isinstance(told, dict) and told.pop("turn", None) == self.turn:
                await self.keep(step.id, encode(told), step.state)


async def _raise(error: DuplicateStep) -> Never:
    raise error


def _together(words: Words) -> tuple[float | None, str | None] | None:
    """What several pieces of remote work tell, as the progress of one job."""
    if len(words) <= 1:
        return next(iter(words.values()), None)
    shares = [share for share, _ in words.values() if share is not None]
    notes = [f"{name}: {note}" for name, (_, note) in sorted(words.items()) if note]
    share = sum(shares) / len(shares) if shares else None
    return share, "; ".join(notes)[:NOTE] or None
