"""Application: what an application hands to the house.

What a runner does not need is named by where it is (`package.module:name`) and imported by whoever
needs it: a runner never imports the web, and `--help` imports nothing.
"""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from retoma.engine.errors import BadInput
from retoma.engine.kind import Kind
from retoma.engine.knob import Knob
from retoma.engine.states import State
from retoma.words import Said, say

NAME = re.compile(r"[a-z][a-z0-9_-]{0,49}")
ADDRESS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
PATH = re.compile(r"(/[a-z0-9_-]+)+")
GROUP = "retoma.apps"  # of entry points: a package names its applications there


class Standing(StrEnum):
    """How a service answered."""

    READY = "ready"
    UNKNOWN = "unknown"  # no key here, or no answer: jobs may still go well elsewhere, or later
    REFUSED = "refused"  # every job would wait for a person


class ServiceCheck(NamedTuple):
    """One service: how it answered, and what to do about it."""

    name: str
    standing: Standing
    found: Said
    todo: Said | None = None


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A path whose JSON may be larger than the server takes elsewhere, and may take its time."""

    path: str
    size: int  # bytes
    keys: int = 10_000  # of all its objects
    text: int | None = (
        64 * 1024
    )  # characters of one string; None: the route looks at each itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One application, on one screen."""

    name: str
    title: str = ""  # what people call it; nothing: its name
    kinds: Sequence["Kind | Callable[..., Any]"] = ()
    stories: str | None = None  # what makes kinds of the tools of the house: (Tools) -> [Kind]
    submits: bool = True  # whether its jobs may be submitted at /api/jobs too, as they are
    watch: str | None = (
        None  # what it finds wrong, for alerts: (Transaction) -> {name: details}
    )
    mend: str | None = (
        None  # sets right what nobody is called for, every 30 s: async (Tools) -> None
    )
    # Whether the server may do the repairs too, where no runner lives: they need the database alone.
    watched_by_server: bool = False
    # Whether its services take our keys and know our models: async (Tools) -> [ServiceCheck]. `retoma doctor` asks.
    checks: str | None = None
    router: str | None = None  # its routes, a fastapi.APIRouter
    pages: str | None = None  # its pages of Mission Control, likewise
    templates: str | None = None  # the package whose folder `templates` they are drawn from
    menu: Sequence[tuple[str, str]] = ()  # which of them the menu names: (word, address)
    commands: str | None = None  # its verbs of the command line, a typer.Typer
    words: Mapping[State, str] = field(default_factory=dict)  # what it calls the states
    migrations: str | None = None  # the package that holds them
    views: Sequence[str] = ()  # of its schema that `public` shows under the same names
    refers: Sequence[tuple[str, str]] = ()  # columns that hold ids of jobs: (table, column)
    knobs: Sequence[Knob] = ()  # what an admin may change of it while it works
    schedules: Sequence[tuple[str, str]] = ()  # its kinds that run by the clock: (kind, cron)
    # Paths that take a file as it comes; with a bound in bytes, where the server's does not fit.
    uploads: Sequence[str | tuple[str, int]] = ()
    large_json: Sequence[JsonBody] = ()  # paths that take more JSON than others

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise BadInput(
                say(
                    "an application is called by small letters, digits, - and _, not {name!r}",
                    name=self.name,
                )
            )
        named = (
            *(self.stories, self.watch, self.mend, self.checks),
            *(self.router, self.pages, self.commands),
        )
        for where in named:
            if where is not None and not ADDRESS.fullmatch(where):
                raise BadInput(
                    say(
                        "{name}: {where!r} names nothing: write package.module:name",
                        name=self.name,
                        where=where,
                    )
                )
        for word, address in self.menu:
            if not PATH.fullmatch(address):
                raise BadInput(
                    say(
                        "{name}: {word!r} leads nowhere: {address!r} is no page, such as /{name}",
                        name=self.name,
                        word=word,
                        address=address,
                    )
                )
        self.own_kinds()

    def own_kinds(self) -> list[Kind]:
        """Its kinds, whether they were given as such or as the functions they were made of."""
        made: list[Kind] = []
        for each in self.kinds:
            kind = getattr(each, "kind", each)
            if not isinstance(kind, Kind):
                raise BadInput(
                    say("{name}: {job!r} is no job: use @job", name=self.name, job=each)
                )
            made.append(kind)
        return made


def installed() -> dict[str, str]:
    """Where the applications of other packages stand, by name; nothing is imported."""
    return {each.name: each.value for each in entry_points(group=GROUP)}


def load(address: str) -> Any:
    """What stands at `package.module:name`; imported now."""
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)
