"""Red-proof: a good history is green, and one planted violation turns its own rule red."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retoma import Retry
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.chaos.history import (
    RULES,
    Accepted,
    Attempt,
    Effect,
    Event,
    History,
    Job,
    Step,
    problems,
)

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
FAILED = {"code": "transient", "after": 1.0}


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def event(
    seq: int,
    kind: EventType,
    epoch: int | None = None,
    *,
    actor: str = "one",
    details: dict[str, Any] | None = None,
    job: int = 1,
) -> Event:
    return Event(job, seq, epoch, kind, at(seq), actor, details or {})


def good() -> History:
    """One job: fails, is lost with its runner after its first step, and is done by another."""
    return History(
        jobs=[Job(1, "chain", 7, 1, State.DONE, None, 3, 9, 1, 0, {"n": 1}, "ok")],
        events=[
            event(1, EventType.SUBMITTED, actor="library"),
            event(2, EventType.CLAIMED, 1),
            event(3, EventType.FAILED, 1, details=FAILED),
            event(4, EventType.CLAIMED, 2),
            event(5, EventType.STEP_SAVED, 2, details={"step": "ask"}),
            event(6, EventType.LOST, 2, actor="two"),
            event(7, EventType.CLAIMED, 3, actor="two"),
            event(
                8, EventType.STEP_SAVED, 3, actor="two", details={"step": "each", "key": "0"}
            ),
            event(9, EventType.DONE, 3, actor="two"),
        ],
        attempts=[
            Attempt(1, 1, "one", at(2), at(3), "failed"),
            Attempt(1, 2, "one", at(4), at(6), "lost"),
            Attempt(1, 3, "two", at(7), at(9), "done"),
        ],
        steps=[Step(1, "ask", "", 2, "a"), Step(1, "each", "0", 3, "b")],
        effects=[
            Effect(1, 1, 2, "ask", 10, "start", at(4)),
            Effect(1, 1, 2, "ask", 10, "end", at(5), "a"),
            Effect(1, 1, 3, "each/0", 20, "start", at(7)),
            Effect(1, 1, 3, "each/0", 20, "end", at(8), "b"),
        ],
        accepted=[Accepted(1, {"n": 1}, "key", 0.5)],
        counts={7: {State.DONE: 1}},
        retries={"chain": Retry(attempts=3, base=1.0, cap=300.0)},
    )


def with_events(history: History, *events: Event) -> History:
    """These instead of those of the same number."""
    kept = {each.seq: each for each in (*history.events, *events)}
    return replace(history, events=list(kept.values()))


def without(history: History, *numbers: int) -> History:
    return replace(history, events=[e for e in history.events if e.seq not in numbers])


def with_job(history: History, **changes: Any) -> History:
    return replace(history, jobs=[replace(history.jobs[0], **changes)])


def then(history: History, *kinds: tuple[EventType, int | None]) -> History:
    """More events, as the same runner would write them."""
    more = [event(10 + n, *each, actor="two") for n, each in enumerate(kinds)]
    return with_events(history, *more)


def instead(*kinds: tuple[EventType, int | None]) -> History:
    """A job with these events after its submission."""
    said = [
        event(2 + n, kind, epoch, details=FAILED if kind is EventType.FAILED else None)
        for n, (kind, epoch) in enumerate(kinds)
    ]
    events = [event(1, EventType.SUBMITTED), *said]
    return replace(good(), events=events, attempts=[], steps=[], effects=[])


def effect(history: History, *more: Effect) -> History:
    return replace(history, effects=[*history.effects, *more])


def attempt(history: History, epoch: int, **changes: Any) -> History:
    rows: Sequence[Attempt] = [
        replace(each, **changes) if each.epoch == epoch else each for each in history.attempts
    ]
    return replace(history, attempts=rows)


def poisoned_at_once() -> History:
    history = instead((EventType.CLAIMED, 1))
    buried = event(3, EventType.BURIED, 1, actor="two", details={"reason": "poison"})
    return with_events(history, buried)


def failed_too_often() -> History:
    ends = [(EventType.CLAIMED, n) if odd else (EventType.FAILED, n)
            for n in range(1, 5) for odd in (True, False)]  # fmt: skip
    return instead(*ends)


def waits(after: float) -> History:
    """Its first failure says so; its next claim comes a second after it."""
    failed = event(3, EventType.FAILED, 1, details=FAILED | {"after": after})
    return with_events(good(), failed)


def at_work_elsewhere(
    state: State, *last: Event, first: EventType = EventType.STEP_SAVED
) -> History:
    """A job with remote work, up to the last of these events."""
    told = {"step": "remote:scrape", "key": "1"}
    events = [
        event(1, EventType.SUBMITTED),
        event(2, EventType.CLAIMED, 1),
        event(3, EventType.STEP_BEGUN, 1, details=told),
        event(4, first, 1, details=told),
        *last,
    ]
    job = replace(good().jobs[0], state=state, seq=len(events), failures=0, epoch=2)
    return replace(good(), jobs=[job], events=events, attempts=[], steps=[], effects=[])


def canceled_elsewhere(*, ended: bool) -> History:
    """Asked to end while it waits; taken up, lost, taken up again: only to stop that work."""
    told = {"step": "remote:scrape", "key": "1"}
    told_of = EventType.STEP_ENDED if ended else EventType.EVIDENCE
    return at_work_elsewhere(
        State.CANCELED,
        event(5, EventType.SNOOZED, 1, details={"after": 0.5}),
        event(6, EventType.CANCEL_REQUESTED, actor="library"),
        event(7, EventType.CLAIMED, 2),
        event(8, EventType.LOST, 2, actor="two"),
        event(9, EventType.CLAIMED, 3, actor="two"),
        event(10, told_of, 3, actor="two", details=told),
        event(11, EventType.CANCELED, 3, actor="two"),
    )


CANCELED = ((EventType.CLAIMED, 1), (EventType.CANCEL_REQUESTED, 1))


def inside(*stays: tuple[float, float | None], pid: int = 20) -> History:
    """A key of at most two; who does not leave is in the process 10, which died at 5."""
    effects = []
    for n, (enter, leave) in enumerate(stays, start=10):
        effects.append(Effect(n, 1, 1, "site:a", 20 if leave else pid, "enter", at(enter)))
        if leave is not None:
            effects.append(Effect(n, 1, 1, "site:a", 20, "leave", at(leave)))
    return replace(good(), effects=effects, caps={"site:a": 2}, deaths={10: at(5)})


PLANTED: dict[str, list[Callable[[], History]]] = {
    "E1 legal moves": [
        lambda: then(good(), (EventType.CLAIMED, 4)),
        lambda: with_events(good(), event(1, EventType.CLAIMED, 1)),
        lambda: with_events(good(), event(6, EventType.STALLED, 2)),
    ],
    "E2 one holder": [
        lambda: attempt(good(), 3, claimed_at=at(5.9)),
        lambda: attempt(good(), 2, ended_at=None),
    ],
    "E3 no stale write": [
        lambda: with_events(good(), event(8, EventType.STEP_SAVED, 2, details={"step": "x"})),
        lambda: then(good(), (EventType.EVIDENCE, 3)),
        lambda: with_events(good(), event(9, EventType.DONE, 3, actor="one")),
    ],
    "E4 epochs add one": [
        lambda: with_events(good(), event(7, EventType.CLAIMED, 4, actor="two")),
        lambda: with_events(good(), event(7, EventType.CLAIMED, 2, actor="two")),
        lambda: with_job(good(), epoch=4),
    ],
    "E4 held when run": [
        lambda: effect(good(), Effect(1, 1, 9, "ask", 10, "start", at(4))),
        lambda: effect(good(), Effect(1, 1, 3, "each/0", 21, "start", at(7))),
    ],
    "E5 never run again": [
        lambda: effect(good(), Effect(1, 1, 3, "ask", 20, "start", at(8))),
    ],
    "E5 step kept once": [
        lambda: with_events(
            good(), event(8, EventType.STEP_SAVED, 3, actor="two", details={"step": "ask"})
        ),
        lambda: replace(good(), steps=[Step(1, "ask", "", 1, "a"), *good().steps[1:]]),
        lambda: replace(good(), steps=[*good().steps, Step(1, "other", "", 3, "c")]),
    ],
    "E5 value as made": [
        lambda: replace(good(), steps=[Step(1, "ask", "", 2, "x"), *good().steps[1:]]),
    ],
    "E5 no late start": [
        lambda: effect(good(), Effect(1, 1, 2, "each/0", 10, "start", at(60))),
    ],
    "E6 intents end": [
        lambda: with_events(good(), event(5, EventType.STEP_BEGUN, 2, details={"step": "pay"})),
        lambda: at_work_elsewhere(State.DEAD, event(5, EventType.BURIED, 1)),
        lambda: at_work_elsewhere(
            State.CANCELED, event(5, EventType.CANCELED, 1), first=EventType.EVIDENCE
        ),
        lambda: canceled_elsewhere(ended=False),
    ],
    "E7 nothing lost": [
        lambda: replace(good(), accepted=[Accepted(2, {"n": 1})]),
        lambda: replace(good(), accepted=[Accepted(1, {"n": 2})]),
    ],
    "E8 one job per key": [
        lambda: replace(good(), accepted=[*good().accepted, Accepted(2, {"n": 1}, "key")]),
        lambda: replace(good(), accepted=[*good().accepted, Accepted(1, {"n": 2}, "key")]),
    ],
    "E9 one end": [
        lambda: then(good(), (EventType.DONE, 3)),
        lambda: without(good(), 9),
        lambda: attempt(good(), 3, ended="forgotten"),
    ],
    "E9 within budget": [
        failed_too_often,
    ],
    "E9 releases": [lambda: instead(*[(EventType.RELEASED, n) for n in range(21)])],
    "E9 failures counted": [lambda: with_job(good(), failures=2)],
    "E10 poison was earned": [poisoned_at_once],
    "E11 folds to state": [lambda: with_job(good(), state=State.CANCELED)],
    "E11 gapless": [
        lambda: without(good(), 5),
        lambda: with_job(good(), seq=10),
    ],
    "E13 cancel is final": [
        lambda: instead(*CANCELED, (EventType.LOST, 1), (EventType.CLAIMED, 2)),
        lambda: instead(*CANCELED, (EventType.DONE, 1)),
        lambda: instead((EventType.CANCELED, None), (EventType.CLAIMED, 1)),
    ],
    "E15 not before due": [
        lambda: replace(good(), accepted=[Accepted(1, {"n": 1}, delay=2.0)]),
        lambda: waits(1.5),
    ],
    "E15 backoff in bounds": [
        lambda: waits(0.4),
        lambda: waits(301.0),
    ],
    "E16 caps hold": [
        lambda: inside((1, 4), (2, 5), (3, 6)),
        lambda: inside((1, 4), (2, None), (6, 8), (7, 9), pid=30),
        lambda: inside((1, 4), (2, None), (3, 7), pid=10),
    ],
    "E18 all ended": [
        lambda: with_job(good(), state=State.RUNNING),
        lambda: with_job(good(), state=State.PARKED),
    ],
    "Q4 counts add up": [lambda: replace(good(), counts={7: {State.DONE: 2}})],
}


def test_a_good_history_is_green():
    assert [] == problems(good())


def test_as_many_inside_as_may_be_is_green_also_where_one_died():
    within = inside((1, 4), (2, None), (4, 6), (5, 7), pid=10)

    assert [] == list(RULES["E16 caps hold"](within))


def test_who_failed_without_a_word_is_inside_no_more():
    """Job 1 fails at 3, by its first claim."""
    came = [
        Effect(job, 1, 1, "site:a", 20, "enter", at(at_))
        for job, at_ in ((1, 1), (8, 1), (9, 4))
    ]
    failed = replace(good(), effects=came, caps={"site:a": 2})
    too_soon = replace(failed, effects=[*came[:2], replace(came[2], at=at(2))])

    assert [] == list(RULES["E16 caps hold"](failed))
    assert [] != list(RULES["E16 caps hold"](too_soon))


def test_e6_an_intent_that_ends_or_that_a_person_is_asked_about_is_green():
    told = {"reason": "unknown_remote", "why": "?"}
    parked = at_work_elsewhere(State.PARKED, event(5, EventType.PARKED, 1, details=told))
    by_hand = at_work_elsewhere(
        State.CANCELED,
        event(5, EventType.PARKED, 1, details=told),
        event(6, EventType.CANCELED, actor="ana"),
    )
    for history in (parked, by_hand, canceled_elsewhere(ended=True)):
        found = problems(history)
        assert not [each for each in found if each.startswith(("E6", "E13"))], found


def test_every_rule_has_a_planted_violation():
    assert RULES.keys() == PLANTED.keys()


@pytest.mark.parametrize(
    ("rule", "planted"),
    [(rule, each) for rule, planted in PLANTED.items() for each in planted],
    ids=[f"{rule} {n}" for rule, planted in PLANTED.items() for n in range(len(planted))],
)
def test_a_planted_violation_turns_its_rule_red(rule: str, planted: Callable[[], History]):
    found = problems(planted())

    assert any(problem.startswith(f"{rule}: ") for problem in found), found
