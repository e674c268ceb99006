"""Things of pools: who wants one, who lets go of one, and who is dealt which. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from retoma.engine.rules.job import Held, Item, Scope


@dataclass(frozen=True, slots=True, eq=False)
class Taking:
    """Somebody wants a thing, whichever it is."""

    held: Held
    generation: int
    pool: str
    scope: Scope
    dice: int = 1  # chance, for pools that pick by it
    again: bool = False  # it may have had one before, and should not get that one
    shuns: str | None = None  # the name of another that it should not get
    keeps: Item | None = None  # the one it holds for the attempt, and wants for longer
    has: frozenset[int] = frozenset()  # what it holds already: asked only after a lost answer


@dataclass(frozen=True, slots=True)
class Freeing:
    """Somebody lets go of a thing. `worked` None: nobody can say."""

    held: Held
    item: Item
    worked: bool | None = None
    by: str | None = None  # in whose hands it was; else those of a job of its kind
    kind: str = ""
    used: bool = True  # else it was held and never given out


@dataclass(frozen=True, slots=True)
class Free:
    """A thing that nobody holds."""

    id: int
    name: str
    value: str
    last_job: int | None
    used_at: Any  # a time of the database; None: it was never used


def deal(takings: Sequence[Taking], free: Iterable[Free]) -> list[Free | None]:
    """One for each, as they stand; not the one a job had last, nor one it shuns, if there is another."""
    left = list(free)
    had = _had_last(left)
    dealt: list[Free | None] = []
    for taking in takings:
        last = had.get(taking.held.job)
        fit = (n for n, each in enumerate(left) if _fits(each, last, taking.shuns))
        dealt.append(left.pop(next(fit, 0)) if left else None)
    return dealt


def _fits(thing: Free, last: Free | None, shunned: str | None) -> bool:
    return thing is not last and thing.name != shunned


def _had_last(free: Iterable[Free]) -> dict[int, Free]:
    last: dict[int, Free] = {}
    for each in free:
        if each.last_job is not None:
            before = last.get(each.last_job)
            if before is None or each.used_at >= before.used_at:
                last[each.last_job] = each
    return last
