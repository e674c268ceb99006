"""What must hold of one job: its row, its timeline, its steps, and what the ledger tells of it. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from retoma.engine.checker.effect_ledger import CHARGE, END, START
from retoma.engine.checker.rows import Account, Case, Event
from retoma.engine.rules.cost import charge, read_charges
from retoma.engine.rules.events import LEADS_TO, End, EventType
from retoma.engine.rules.job import RELEASES, REMOTE
from retoma.engine.rules.states import ENDED, MOVES, State, StepState
from retoma.words import Said, say

Rule = Callable[[Case], Iterator[Said]]

OPENS = frozenset({EventType.SUBMITTED, EventType.UNPARKED, EventType.AGAIN})
WELL_ENDED = frozenset({EventType.DONE, EventType.SKIPPED})
CANCEL_ENDS = WELL_ENDED | {EventType.CANCELED}
# How a claim may end that its own runner could not.
BY_OTHERS = frozenset(
    {EventType.LOST, EventType.RELEASED, EventType.BURIED, EventType.CANCELED}
)
INTENT_ENDS = frozenset({EventType.STEP_SAVED, EventType.STEP_FAILED, EventType.STEP_ENDED})
LIVE = frozenset({StepState.BEGUN, StepState.SAVED})


# — states and events —


def legal_moves(case: Case) -> Iterator[Said]:
    """E1: every pair of moves that follow each other is an edge of the published table."""
    moves = [(event, to) for event in case.events if (to := LEADS_TO[event.type]) is not None]
    if not moves or moves[0][0].type is not EventType.SUBMITTED:
        yield say("its timeline does not begin with its submission")
    for (_, was), (event, to) in pairwise(moves):
        if to not in MOVES[was]:
            yield say(
                "it went from {was} to {to} by event {seq} ({event}): no such move",
                was=was,
                to=to,
                seq=event.seq,
                event=event.type,
            )


def folds_to_state(case: Case) -> Iterator[Said]:
    """E11: the events of a job, folded, are its state."""
    state: State | None = None
    for event in case.events:
        state = LEADS_TO[event.type] or state
    if state is not case.job.state:
        yield say(
            "its row says {row}, its events say {events}", row=case.job.state, events=state
        )


def gapless(case: Case) -> Iterator[Said]:
    """E11: events are numbered 1..n, and the job knows n."""
    numbers = [event.seq for event in case.events]
    if numbers != list(range(1, len(numbers) + 1)):
        missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
        yield say("events are missing from its timeline: {numbers}", numbers=missing[:20])
    if case.job.seq != len(numbers):
        yield say(
            "its row counts {row} events, there are {events}",
            row=case.job.seq,
            events=len(numbers),
        )


# — claims —


def epochs_add_one(case: Case) -> Iterator[Said]:
    """E4: each claim adds one to the epoch, and the job knows the last."""
    epochs = [event.epoch for event in case.events if event.type is EventType.CLAIMED]
    if epochs != list(range(1, len(epochs) + 1)):
        yield say("it was claimed under the epochs {epochs}", epochs=epochs[:20])
    if case.job.epoch != len(epochs):
        yield say(
            "its row is at epoch {epoch} after {claims} claims",
            epoch=case.job.epoch,
            claims=len(epochs),
        )


def no_stale_write(case: Case) -> Iterator[Said]:
    """E3, E4: whatever carries an epoch lies inside that claim, and is its holder's."""
    holder: tuple[int, str | None] | None = None
    for event in case.events:
        if event.type is EventType.CLAIMED and event.epoch is not None:
            holder = (event.epoch, event.actor)
        elif event.epoch is not None:
            if holder is None or holder[0] != event.epoch:
                yield say(
                    "event {seq} ({event}) of epoch {epoch} lies outside the claim of that epoch",
                    seq=event.seq,
                    event=event.type,
                    epoch=event.epoch,
                )
            elif _is_the_holders(event) and event.actor != holder[1]:
                yield say(
                    "event {seq} ({event}) of epoch {epoch} was written by another runner",
                    seq=event.seq,
                    event=event.type,
                    epoch=event.epoch,
                )
            if event.ends_claim:
                holder = None


def _is_the_holders(event: Event) -> bool:
    if event.type is EventType.PARKED and event.details.get("reason") == "unknown_remote":
        return False  # by the runner that took it back for the third time
    return event.type not in BY_OTHERS | {EventType.CANCEL_REQUESTED}


def one_end(case: Case) -> Iterator[Said]:
    """E9: each claim ends in exactly one way; only the claim of a running job is open."""
    claims = [event.epoch for event in case.events if event.type is EventType.CLAIMED]
    ends = Counter(event.epoch for event in case.events if event.ends_claim)
    open_claim = claims[-1] if claims and case.job.state is State.RUNNING else None
    for epoch in claims:
        if ends[epoch] != (epoch != open_claim):
            yield say("the claim of epoch {epoch} ended {n} times", epoch=epoch, n=ends[epoch])


def released_within_bounds(case: Case) -> Iterator[Said]:
    """E9: per generation a job is released 20 times at most."""
    for generation in case.generations():
        released = sum(event.type is EventType.RELEASED for event in generation)
        if released > RELEASES:
            yield say("it was released {n} times in one generation", n=released)


def failures_counted(case: Case) -> Iterator[Said]:
    """E9: a job counts the failures of its generation, and the claim that is still open."""
    failed = sum(
        event.ends_claim and claim_end(event) is End.FAILED for event in case.generations()[-1]
    )
    if case.job.failures != failed + (case.job.state is State.RUNNING):
        yield say(
            "its row counts {row} failures, its events tell of {events}",
            row=case.job.failures,
            events=failed,
        )


def claim_end(event: Event) -> End:
    """How the claim ended that this event ends."""
    if event.type is EventType.BURIED:
        return End.LOST if event.details.get("reason") == "poison" else End.FAILED
    return End(event.type)


def poison_was_earned(case: Case) -> Iterator[Said]:
    """E10: only three lost runners in a row without progress bury a job as poison."""
    losses = 0
    for event in case.events:
        if event.type is EventType.BURIED and event.details.get("reason") == "poison":
            if losses < 2:
                yield say("it was buried as poison after {n} losses in a row", n=losses + 1)
        elif event.type is EventType.LOST:
            losses += 1
        elif event.ends_claim or event.type in OPENS | {EventType.STEP_SAVED}:
            losses = 0


def cancel_is_final(case: Case) -> Iterator[Said]:
    """E13: after a cancel no new try: it ends canceled, or done and too late.

    Unless work of it is at another machine: it is taken up, as often as needed, to stop that.
    """
    asked = canceled = False
    remote: set[str] = set()
    for event in case.events:
        if event.type in INTENT_ENDS | {EventType.STEP_BEGUN}:
            _follow(remote, event)
        if event.type is EventType.AGAIN:
            asked = canceled = False
        elif canceled:
            yield say(
                "event {seq} ({event}) came after it was canceled",
                seq=event.seq,
                event=event.type,
            )
        elif asked and not (remote and event.type is not EventType.DONE):
            yield from _after_request(event)
        asked = asked or event.type is EventType.CANCEL_REQUESTED
        canceled = canceled or event.type is EventType.CANCELED


def _after_request(event: Event) -> Iterator[Said]:
    if event.type is EventType.CLAIMED:
        yield say("it was claimed again after its cancel was requested")
    elif event.type in WELL_ENDED and not event.details.get("too_late"):
        yield say("it ended {event} after a cancel and does not say too late", event=event.type)
    elif event.ends_claim and event.type not in CANCEL_ENDS:
        yield say("its claim ended {event} after its cancel was requested", event=event.type)


def _follow(remote: set[str], event: Event) -> None:
    if event.type in (EventType.STEP_FAILED, EventType.STEP_ENDED):
        remote.discard(event.step)
    elif event.step.startswith(REMOTE):
        remote.add(event.step)


def can_be_found(case: Case) -> Iterator[Said]:
    """E7: no job is lost: a waiting job can be claimed, an ended one has an end."""
    job = case.job
    if job.state is State.WAITING and job.turn is None and job.run_at is None:
        yield say("it waits with neither a turn nor a time: no claim will ever find it")
    if (job.state is State.RUNNING) != (job.runner is not None):
        yield say(
            "it is {state} and its runner is {runner}", state=job.state, runner=job.runner
        )
    if (job.state in ENDED) != (job.ended_at is not None):
        yield say("it is {state} and ended at {at}", state=job.state, at=job.ended_at)


# — steps —


def step_kept_once(case: Case) -> Iterator[Said]:
    """E5: a step is committed once, by the epoch its row names; afresh it may be committed again.

    The row of remote work is written again when the work has ended.
    """
    kept: dict[str, list[int | None]] = {}
    for number, generation in enumerate(case.generations(), start=1):
        for event in generation if number >= case.job.fresh_from else ():
            if event.type is EventType.STEP_SAVED:
                kept.setdefault(event.step, []).append(event.epoch)
    visible = [step for step in case.steps if step.generation >= case.job.fresh_from]
    rows: dict[str, list[int]] = {}
    for step in visible:
        if step.state in (StepState.SAVED, StepState.ENDED):
            rows.setdefault(step.called, []).append(step.epoch)
    for name, epochs in kept.items():
        # A newer version of a step is another row with the same name.
        if len(epochs) > max(len(rows.get(name, ())), 1):
            yield say(
                "step {step} was committed {n} times (epochs {epochs})",
                step=name,
                n=len(epochs),
                epochs=epochs[:20],
            )
        elif not name.startswith(REMOTE) and (
            name not in rows or not {*epochs} - {None} <= {*rows[name]}
        ):
            yield say(
                "step {step} of epoch {epoch} is not the one that is kept",
                step=name,
                epoch=epochs[0],
            )
    for step in visible:
        if step.state is StepState.SAVED and step.called not in kept:
            yield say("step {step} is kept, and no event tells of it", step=step.called)


def intents_end(case: Case) -> Iterator[Said]:
    """E6: what was begun was seen to end, or a person may still say what became of it.

    Remote work has ended when that is told, not when its handle is kept. A step of our own that
    nobody saw end waits on the list of the dead too; remote work would run on unseen. Who ends a job
    that is parked has seen what it says of them.
    """
    unseen: set[str] = set()
    parked = False
    for event in case.events:
        if event.type is EventType.STEP_BEGUN:
            unseen.add(event.step)
        elif event.type in INTENT_ENDS and not _handle_kept(event):
            unseen.discard(event.step)
        if event.type in (EventType.PARKED, EventType.CLAIMED):
            parked = event.type is EventType.PARKED
    for name in sorted(unseen):
        if case.job.state in (State.DONE, State.SKIPPED) and not parked:
            yield say(
                "it is {state}, and nobody saw step {step} end", state=case.job.state, step=name
            )
        elif name.startswith(REMOTE) and case.job.state in ENDED and not parked:
            yield say("it is {state} and left {step} running", state=case.job.state, step=name)


def _handle_kept(event: Event) -> bool:
    return event.type is EventType.STEP_SAVED and event.step.startswith(REMOTE)


# — the ledger —


def never_run_again(case: Case) -> Iterator[Said]:
    """E5: a committed step is not started by a later claim, unless it was told to start afresh."""
    committed = {
        event.step: event.epoch
        for number, generation in enumerate(case.generations(), start=1)
        for event in generation
        if number >= case.job.fresh_from and event.type is EventType.STEP_SAVED
    }
    for effect in case.effects:
        epoch = committed.get(effect.step)
        if effect.phase == START and epoch is not None and effect.epoch > epoch:
            yield say(
                "step {step}, committed at epoch {committed}, was started again at epoch {epoch}",
                step=effect.step,
                committed=epoch,
                epoch=effect.epoch,
            )


def value_is_the_one_made(case: Case) -> Iterator[Said]:
    """E5: what is kept of a step is what its function gave under that epoch."""
    made = {
        (effect.step, effect.epoch): effect.value
        for effect in case.effects
        if effect.phase == END
    }
    known = {name for name, _ in made}
    for step in case.steps if made else ():
        saved = step.state is StepState.SAVED and step.called in known
        if saved and made.get((step.called, step.epoch)) != step.value:
            yield say("step {step} keeps a value that nobody made", step=step.called)


def held_when_run(case: Case) -> Iterator[Said]:
    """E2, E4: nothing runs under an epoch that was never given out, nor twice under one."""
    claimed = {event.epoch for event in case.events if event.type is EventType.CLAIMED}
    processes: dict[int, int] = {}
    for effect in case.effects:
        if effect.epoch not in claimed:
            yield say("it ran under epoch {epoch}, which nobody claimed", epoch=effect.epoch)
        if processes.setdefault(effect.epoch, effect.pid) != effect.pid:
            yield say("it ran under epoch {epoch} in two processes", epoch=effect.epoch)


def run_once_per_claim(case: Case) -> Iterator[Said]:
    """E5: one claim starts a step once, and no more often than it fails before that."""
    starts = Counter(
        (effect.step, effect.epoch) for effect in case.effects if effect.phase == START
    )
    ended = Counter(
        (effect.step, effect.epoch) for effect in case.effects if effect.phase == END
    )
    for (step, epoch), n in starts.items():
        if n > 1 and ended[step, epoch] > 1:
            yield say(
                "step {step} ran {n} times to its end under epoch {epoch}",
                step=step,
                n=ended[step, epoch],
                epoch=epoch,
            )


def accepted_as_given(case: Case) -> Iterator[Said]:
    """E7: what was accepted is there as it was given."""
    for each in case.accepted:
        if each.payload != case.job.payload:
            yield say("it was accepted with another payload")


def charged_once(case: Case) -> Iterator[Said]:
    """What a job has spent is what its handler paid: nothing twice, and nothing forgotten."""
    for account, amount in _own_charges(case).items():
        if case.spent.get(account, 0) < amount:
            yield _wrong_cost(account, case.spent.get(account, 0), amount)
    most, least = _paid(case)
    for account, amount in most.items():
        spent = case.spent.get(account, 0)
        if not least[account] <= spent <= amount:
            yield _wrong_cost(account, spent, amount)


def _wrong_cost(account: Account, spent: int, paid: int) -> Said:
    return say(
        "it spent {spent} {unit} at {provider}, its handler paid {paid}",
        spent=spent,
        unit=account[2],
        provider="/".join(filter(None, account[:2])) or "-",
        paid=paid,
    )


def _own_charges(case: Case) -> Counter[Account]:
    """What the steps that are kept have cost: at least that much was spent."""
    found: Counter[Account] = Counter()
    for step in case.steps:
        for each in read_charges(step.cost):
            for unit, n in each.amounts().items():
                found[each.provider, each.model, unit] += n
    return found


def _paid(case: Case) -> tuple[Counter[Account], Counter[Account]]:
    """What the ledger has, and of that what must have been counted: a runner that dies forgets."""
    holders = {e.epoch: e.actor for e in case.events if e.type is EventType.CLAIMED}
    counted = {
        event.epoch
        for event in case.events
        if event.ends_claim
        and event.type not in BY_OTHERS - {EventType.BURIED}
        and event.actor == holders.get(event.epoch)  # not by the runner that took it back
    }
    committed = {
        (event.step, event.epoch) for event in case.events if event.type is EventType.STEP_SAVED
    }
    most: Counter[Account] = Counter()
    least: Counter[Account] = Counter()
    for effect in case.effects:
        if effect.phase != CHARGE:
            continue
        told = dict(effect.value)
        names = {name: told.pop(name, None) for name in ("provider", "model", "usd", "brl")}
        made = charge(**names, units=told)
        for unit, n in made.amounts().items():
            account = (made.provider, made.model, unit)
            most[account] += n
            if effect.epoch in counted or (effect.step, effect.epoch) in committed:
                least[account] += n
    return most, least


# By the name under which a violation of it is reported.
RULES: dict[str, Rule] = {
    "moves": legal_moves,
    "state": folds_to_state,
    "events": gapless,
    "epochs": epochs_add_one,
    "stale writes": no_stale_write,
    "claims": one_end,
    "releases": released_within_bounds,
    "failures": failures_counted,
    "poison": poison_was_earned,
    "cancel": cancel_is_final,
    "lost jobs": can_be_found,
    "steps": step_kept_once,
    "intents": intents_end,
    "costs": charged_once,
}
WITH_LEDGER: dict[str, Rule] = {
    "repeated steps": never_run_again,
    "repeated effects": run_once_per_claim,
    "step values": value_is_the_one_made,
    "holders": held_when_run,
    "submissions": accepted_as_given,
}


def problems(case: Case, rules: Iterable[tuple[str, Rule]]) -> Iterator[tuple[str, Said]]:
    """Each violation with the name of its rule."""
    for name, rule in rules:
        for found in rule(case):
            yield name, found
