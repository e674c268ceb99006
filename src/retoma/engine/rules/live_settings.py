"""Knobs: what an admin may change while work goes on, each with its rule and its reason. Pure.

What a knob is: what the environment of a process says, else what somebody has set in the database,
else its default. What its rule refuses is never kept.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.words import Said, say

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,49}", re.ASCII)
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
NOTHING: Final = ("", "none", "null")
WORDS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class KnobType(StrEnum):
    """What may stand in it."""

    INT = "int"
    FLOAT = "float"
    DURATION = "duration"  # seconds; or text such as 90s and 1h30m
    BOOL = "bool"
    TEXT = "text"
    CHOICE = "choice"


class Source(StrEnum):
    """Where the value of a knob comes from."""

    DEFAULT = "default"
    DATABASE = "database"  # somebody has set it, for all processes
    ENVIRONMENT = "environment"
    GIVEN = "given"  # by the code or the command line that started the process


# What holds where a knob says nothing of it: whole numbers that every reader of JSON has, a century.
MOST: Final = {
    KnobType.INT: 2.0**53,
    KnobType.FLOAT: 1e15,
    KnobType.DURATION: 100 * 365 * 86_400.0,
    KnobType.TEXT: 1_000.0,
}
LEAST: Final = {**dict.fromkeys(KnobType, 0.0), KnobType.INT: -(2.0**53), KnobType.FLOAT: -1e15}


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob. A default of None means that it may be nothing at all."""

    name: str
    default: Any
    type: KnobType | str
    least: float | None = None
    most: float | None = None  # of a text: characters
    unit: str = ""
    why: str = ""
    choices: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name.rpartition(".")[2]):
            raise BadInput(
                say(
                    "a knob is called by small letters, digits and _, not {name!r}",
                    name=self.name,
                )
            )
        if self.type not in list(KnobType):
            raise BadInput(
                say(
                    "{name}: a knob is one of {known}, not {type!r}",
                    name=self.name,
                    known=", ".join(KnobType),
                    type=self.type,
                )
            )
        object.__setattr__(self, "type", KnobType(self.type))
        object.__setattr__(self, "choices", tuple(self.choices))
        object.__setattr__(self, "default", self.read(self.default))
        if self.type is KnobType.DURATION:
            object.__setattr__(self, "unit", "s")

    def read(self, given: object) -> Any:
        """What was meant, as a value of its type, from JSON or from text; else the rule it breaks."""
        if self._is_nothing(given):
            if self.default is None:
                return None
            raise self._refused(given)
        try:
            value = _READERS[KnobType(self.type)](given)
        except (BadInput, TypeError, ValueError, OverflowError):
            raise self._refused(given) from None
        if not self._holds(value):
            raise self._refused(given)
        return value

    def _is_nothing(self, given: object) -> bool:
        if given is None:
            return True
        is_text = self.type in (KnobType.TEXT, KnobType.CHOICE)
        return isinstance(given, str) and not is_text and given.strip().lower() in NOTHING

    def _holds(self, value: Any) -> bool:
        if self.type is KnobType.CHOICE:
            return value in self.choices
        if self.type is KnobType.BOOL:
            return True
        size = len(value) if self.type is KnobType.TEXT else value
        least = LEAST[KnobType(self.type)] if self.least is None else self.least
        return bool(least <= size <= self._most)

    @property
    def _most(self) -> float:
        if self.most is not None:
            return self.most
        return MOST.get(KnobType(self.type), math.inf)

    @property
    def rule(self) -> Said:
        """What may stand in it, in words."""
        least = _plain(self.least if self.least is not None else LEAST[KnobType(self.type)])
        most = _plain(self._most)
        match KnobType(self.type):
            case KnobType.BOOL:
                return say("true or false")
            case KnobType.CHOICE:
                return say("one of {choices}", choices=", ".join(self.choices))
            case KnobType.TEXT:
                return say("text of {least} to {most} characters", least=least, most=most)
            case KnobType.DURATION:
                return say(
                    "a length of time from {least} s to {most} s, in seconds or as 1h30m",
                    least=least,
                    most=most,
                )
            case KnobType.INT:
                return say("a whole number from {least} to {most}", least=least, most=most)
            case KnobType.FLOAT:
                return say("a number from {least} to {most}", least=least, most=most)

    def _refused(self, given: object) -> BadInput:
        shown = given[:100] if isinstance(given, str) else given
        return BadInput(
            say(
                "{name} is {rule}, not {given!r}; nothing was changed",
                name=self.name,
                rule=self.rule,
                given=shown,
            )
        )


# — reading —


def _integer(given: object) -> int:
    if isinstance(given, str) and NUMBER.fullmatch(given.strip()):
        return int(given)
    if isinstance(given, float) and given.is_integer() and abs(given) < 2**53:
        return int(given)
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    raise ValueError("no whole number")


def _number(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise TypeError("no number")
    value = float(given)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _length(given: object) -> float:
    if isinstance(given, str):
        text = given.strip()
        return seconds(float(text) if NUMBER.fullmatch(text) else text)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError("no length of time")
    return seconds(given)


def _truth(given: object) -> bool:
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.strip().lower() in WORDS:
        return WORDS[given.strip().lower()]
    raise ValueError("neither true nor false")


def _text(given: object) -> str:
    if not isinstance(given, str) or not given.isprintable():
        raise ValueError("no printable text")
    return given


_READERS: Final[Mapping[KnobType, Callable[[object], Any]]] = {
    KnobType.INT: _integer,
    KnobType.FLOAT: _number,
    KnobType.DURATION: _length,
    KnobType.BOOL: _truth,
    KnobType.TEXT: _text,
    KnobType.CHOICE: _text,
}


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


# — what a process knows —


@dataclass(frozen=True, slots=True)
class Override:
    """What somebody has set."""

    value: str  # JSON
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobSeen:
    """A knob as it stands, for this process."""

    knob: Knob
    value: Any
    source: Source
    changed_at: datetime | None = None
    changed_by: str | None = None

    @property
    def name(self) -> str:
        return self.knob.name

    @property
    def default(self) -> Any:
        return self.knob.default

    @property
    def fixed(self) -> bool:
        """It cannot be changed while this process runs."""
        return self.source in (Source.ENVIRONMENT, Source.GIVEN)


# Raises BadInput where what one of them would be does not go with what the others are.
Rule = Callable[[str, Mapping[str, Any]], object]


class Declared:
    """The knobs that a process knows by name, and what its environment has fixed of them."""

    def __init__(
        self,
        knobs: Sequence[Knob] = (),
        *,
        fixed: Mapping[str, Any] = MappingProxyType({}),
        rule: Rule = lambda *_: None,
    ) -> None:
        """`fixed`: of these alone; what else stands in it is for others."""
        self._knobs = {each.name: each for each in knobs}
        self._fixed = {name: value for name, value in fixed.items() if name in self._knobs}
        self.rule = rule

    def add(self, owner: str, knobs: Sequence[Knob]) -> None:
        """Those of an application, under its name; the same ones may be told twice."""
        for each in knobs:
            name = f"{owner}.{each.name}"
            self._knobs[name] = replace(each, name=name)

    def know(self, others: "Declared") -> None:
        """Those of somebody else besides."""
        self._knobs.update({each.name: each for each in others})

    def fix(self, values: Mapping[str, Any]) -> None:
        """What the environment says of some of them: nobody changes it in the database."""
        self._fixed.update({self.of(name).name: value for name, value in values.items()})

    @property
    def fixed(self) -> Mapping[str, Any]:
        return dict(self._fixed)

    def __iter__(self) -> Iterator[Knob]:
        return iter(self._knobs.values())

    def of(self, name: str) -> Knob:
        if name not in self._knobs:
            raise NotFound(say("no knob is called {name!r}; nothing was changed", name=name))
        return self._knobs[name]

    def free(self, name: str) -> Knob:
        """One that may be changed."""
        knob = self.of(name)
        if name in self._fixed:
            raise IllegalMove(
                say(
                    "{name} is set by the environment, which holds over what is set here;"
                    " nothing was changed",
                    name=name,
                )
            )
        return knob
