"""As much of Prometheus' language as our own rules use, over two scrapes that lie some time apart."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.scrape import Labels, Scrape

Vector = Mapping[Labels, float]
TOKEN = re.compile(
    r"\s*(?:(?P<name>[a-zA-Z_]\w*)|(?P<number>[\d.]+)|(?P<text>\"[^\"]*\")|(?P<range>\[\d+m\])"
    r"|(?P<sign>>=|==|=~|!=|[(){},=/>]))"
)
COMPARES: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Scrapes:
    """What was known before, what is known now, and the seconds between."""

    before: Scrape
    now: Scrape
    seconds: float


def fires(expression: str, scrapes: Scrapes) -> list[dict[str, str]]:
    """The labels of every series for which it holds."""
    reader = _Reader(expression, scrapes)
    found = reader.both()
    assert reader.at_end, f"not understood: {expression}"
    return [dict(labels) for labels in found]


class _Reader:
    """Reads and reckons at once: `and` over comparisons over quotients over terms."""

    def __init__(self, expression: str, scrapes: Scrapes) -> None:
        self._tokens = list(_tokens(expression))
        self._scrapes = scrapes

    @property
    def at_end(self) -> bool:
        return not self._tokens

    def both(self) -> Vector:
        left = self._compared()
        while self._take("and"):
            right = self._compared()
            left = {labels: n for labels, n in left.items() if labels in right}
        return left

    def _compared(self) -> Vector:
        left = self._quotient()
        for sign, holds in COMPARES.items():
            if self._take(sign):
                bound = float(self._next())
                return {labels: n for labels, n in left.items() if holds(n, bound)}
        return left

    def _quotient(self) -> Vector:
        left = self._term()
        if not self._take("/"):
            return left
        right = self._term()
        return {
            labels: n / right[labels] if right[labels] else float("nan")
            for labels, n in left.items()
            if labels in right
        }

    def _term(self) -> Vector:
        name = self._next()
        if name == "max":
            return self._greatest()
        if name in ("rate", "increase"):
            return self._grown(per_second=name == "rate")
        return self._selected(name, self._matchers(), self._scrapes.now)

    def _greatest(self) -> Vector:
        self._expect("by")
        kept = {name for name in self._list("(", ")") if name != ","}
        self._expect("(")
        found: dict[Labels, float] = {}
        for labels, n in self.both().items():
            its = frozenset((name, text) for name, text in labels if name in kept)
            found[its] = max(n, found.get(its, n))
        self._expect(")")
        return found

    def _grown(self, *, per_second: bool) -> Vector:
        self._expect("(")
        name, matchers = self._next(), self._matchers()
        assert float(self._next()[1:-2]) * 60 == self._scrapes.seconds
        self._expect(")")
        before = self._selected(name, matchers, self._scrapes.before)
        now = self._selected(name, matchers, self._scrapes.now)
        share = self._scrapes.seconds if per_second else 1.0
        return {
            labels: (n - before[labels]) / share
            for labels, n in now.items()
            if labels in before
        }

    def _matchers(self) -> list[tuple[str, str, str]]:
        if not self._tokens or self._tokens[0] != "{":
            return []
        said = [each for each in self._list("{", "}") if each != ","]
        return [
            (name, sign, text[1:-1]) for name, sign, text in zip(*[iter(said)] * 3, strict=True)
        ]

    @staticmethod
    def _selected(name: str, matchers: list[tuple[str, str, str]], scrape: Scrape) -> Vector:
        return {
            its: n
            for its, n in scrape.get(name, {}).items()
            if all(((label, text) in its) is (sign == "=") for label, sign, text in matchers)
        }

    def _list(self, first: str, last: str) -> list[str]:
        self._expect(first)
        found = []
        while not self._take(last):
            found.append(self._next())
        return found

    def _next(self) -> str:
        return self._tokens.pop(0)

    def _take(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False

    def _expect(self, token: str) -> None:
        assert self._take(token), f"{token!r} is missing before {self._tokens[:3]}"


def _tokens(expression: str) -> Iterator[str]:
    at = 0
    while at < len(expression.rstrip()):
        found = TOKEN.match(expression, at)
        assert found, f"not understood: {expression[at:]}"
        yield found[0].strip()
        at = found.end()
