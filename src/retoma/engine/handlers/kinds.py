"""A kind of job: its story, its payload, and how it is tried."""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, get_type_hints, overload

from retoma.codec import decode, encode
from retoma.engine.handlers.context import Context
from retoma.engine.isolation.function import is_async, returns, what_it_is
from retoma.engine.isolation.isolate import (
    NO_LIMITS,
    Limits,
    check_can_be_loaded,
    check_can_travel,
)
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput, Code, UnknownKind
from retoma.engine.rules.gates import Limit, limits_of
from retoma.engine.rules.job import Job
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import State
from retoma.words import say

F = TypeVar("F", bound=Callable[..., Any])
Story = Callable[[Context, Any], Awaitable[Any]]
# What every log line about a job says of it besides, from its payload and which attempt it is.
LogFields = Callable[[Any, int], Mapping[str, Any]]
SettledFields = Callable[[int, State, float], Mapping[str, Any]]

NAME_LENGTH = 100
POOL_LENGTH = 200
PRIORITIES = range(-1_000, 1_001)  # smaller runs first


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What `@job` makes of a function. Remembers nothing."""

    name: str
    story: Story
    takes: Any = None  # the payload's annotation; None: plain JSON
    takes_nothing: bool = False
    returns: Any = None  # the annotation of its result; None: plain JSON
    version: int = 1
    queue: str = ""
    application: str = ""  # under whose budget it pays; without one a kind is its own
    priority: int = 0
    at_once: tuple[Limit, ...] = ()  # how many of its jobs, over all runners
    holds: tuple[str, ...] = ()  # pools of which each of its jobs has a thing while it runs
    timeout: float | None = None  # seconds of one attempt
    stall: float | None = None  # seconds without a saved step or a report of progress
    limits: Limits = NO_LIMITS  # of the children of its steps
    retry: Retry = field(default_factory=Retry)
    codes: Mapping[str, Code] = field(default_factory=dict)
    log_fields: LogFields | None = None
    log_settled: SettledFields | None = None
    child: Callable[..., Any] | None = None  # the sync function that runs in a child process

    def __post_init__(self) -> None:
        _check_name("kind", self.name)
        _check_name("queue", self.queue)
        _check_name("application", self.account)
        if self.version < 1:
            raise BadInput(
                say(
                    "{name}: a version is at least 1, not {version}",
                    name=self.name,
                    version=self.version,
                )
            )
        if self.priority not in PRIORITIES:
            raise BadInput(
                say(
                    "{name}: a priority is from -1000 to 1000, not {priority}",
                    name=self.name,
                    priority=self.priority,
                )
            )

    @property
    def tag(self) -> str:
        """How a claim asks for it: a runner that knows only version 1 never gets version 2."""
        return f"{self.name}@{self.version}"

    @property
    def account(self) -> str:
        """The application its costs are counted for."""
        return self.application or self.name

    def encoded(self, payload: Any) -> str:
        """The payload as it is stored, checked against what the story takes."""
        text = encode(payload, self.takes)
        if self.takes is not None:
            decode(text, self.takes)
        return text

    def payload(self, text: str) -> Any:
        return decode(text, self.takes)

    def caps(self) -> dict[str | None, int]:
        return {limit.prefix(self.name): limit.cap for limit in self.at_once}

    def keys_on(self, text: str) -> dict[str, int]:
        """The keys under which a job with this payload counts, and how many of each may run."""
        if not self.at_once:
            return {}
        payload = self.payload(text)
        keys = ((limit.key_of(self.name, payload), limit.cap) for limit in self.at_once)
        return {key: cap for key, cap in keys if key is not None}


# What an application finds wrong, by a name of its own: details, of which `text` is told to people.
Watch = Callable[[Any], Mapping[str, Mapping[str, Any]]]
# What it sets right itself; done twice at once, or after somebody else did it, it changes nothing.
Mend = Callable[[], Awaitable[None]]


class Kinds:
    """The kinds a process knows."""

    def __init__(self) -> None:
        self._by_tag: dict[str, Kind] = {}
        self.watches: dict[str, Watch] = {}  # what applications look for, by their names
        self.mends: dict[str, Mend] = {}  # what they set right themselves
        self._owners: dict[str, str] = {}  # whose manifest a kind stands in, by its name

    def add(self, kind: Kind, application: str | None = None) -> None:
        """`application`: in whose manifest it stands, if it does."""
        if kind.tag in self._by_tag:
            raise BadInput(
                say(
                    "there is already a job {name} of version {version}",
                    name=kind.name,
                    version=kind.version,
                )
            )
        for other in self:
            if other.name == kind.name and other.caps() != kind.caps():
                raise BadInput(
                    say(
                        "{name}: versions {one} and {other} have different limits; they share what"
                        " they are limited by",
                        name=kind.name,
                        one=other.version,
                        other=kind.version,
                    )
                )
        self._by_tag[kind.tag] = kind
        if application is not None:
            self._owners[kind.name] = application

    def of(self, job: "Kind | Callable[..., Any] | str") -> Kind:
        """The kind behind a decorated function, or the newest of a name."""
        kind = getattr(job, "kind", job)
        if isinstance(kind, str):
            versions = [each for each in self if each.name == kind]
            if not versions:
                raise UnknownKind(
                    say(
                        "no job is called {kind!r} here; known: {known}",
                        kind=kind,
                        known=self._names(),
                    )
                )
            return max(versions, key=lambda each: each.version)
        if not isinstance(kind, Kind) or self._by_tag.get(kind.tag) is not kind:
            raise UnknownKind(
                say(
                    "{job!r} is not a job of this app; known: {known}",
                    job=job,
                    known=self._names(),
                )
            )
        return kind

    def result(self, job: Job) -> Any:
        """What a done job returned, in the type its function says it returns."""
        kind = self._by_tag.get(f"{job.kind}@{job.version}")
        return decode(job.result or "null", None if kind is None else kind.returns)

    def check_children(self) -> None:
        """Refuse kinds whose function no child process can load, before any of their jobs is claimed."""
        for kind in self:
            if kind.child is not None:
                check_can_be_loaded(kind.child)

    def tagged(self, name: str, version: int) -> Kind:
        return self._by_tag[f"{name}@{version}"]

    def tags(self) -> list[str]:
        return sorted(self._by_tag)

    def at_once(self) -> list[tuple[str, Limit]]:
        return [(kind.name, limit) for kind in self for limit in kind.at_once]

    def holding(self) -> dict[str, tuple[str, ...]]:
        """The pools of each kind that holds things, by how a claim asks for it."""
        return {kind.tag: kind.holds for kind in self if kind.holds}

    def holding_by_queue(self) -> dict[str, list[str]]:
        """Of each queue the kinds that hold things."""
        tags: dict[str, list[str]] = {}
        for kind in self:
            if kind.holds:
                tags.setdefault(kind.queue, []).append(kind.tag)
        return tags

    def queues(self) -> list[str]:
        return sorted({kind.queue for kind in self})

    def belong(self) -> list[tuple[str, str, str]]:
        """Of each kind its name, its application and the queue of its newest version."""
        newest = {kind.name: kind for kind in sorted(self, key=lambda each: each.version)}
        return [
            (name, self._owners.get(name, kind.account), kind.queue)
            for name, kind in sorted(newest.items())
        ]

    def but(self, queues: frozenset[str], kinds: frozenset[str]) -> tuple[list[str], list[str]]:
        """The queues and tags that are left without these: a queue of which no kind is left is none."""
        left = [kind for kind in self if kind.name not in kinds]
        asked = {kind.queue for kind in left} - queues
        return sorted(asked), sorted(kind.tag for kind in left)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_tag.values())

    def _names(self) -> str:
        return ", ".join(sorted({kind.name for kind in self})) or "none"


@overload
def job(fn: F, /) -> F: ...
@overload
def job(
    *,
    name: str | None = None,
    version: int = 1,
    queue: str | None = None,
    priority: int = 0,
    limit: "int | Limit | Sequence[int | Limit] | None" = None,
    holds: "str | Sequence[str]" = (),
    timeout: Any = None,
    stall: Any = None,
    cpu: Any = None,
    memory: Any = None,
    retry: Retry | None = None,
    codes: Mapping[str, Code] | None = None,
    application: str | None = None,
    log_fields: LogFields | None = None,
    log_settled: SettledFields | None = None,
) -> Callable[[F], F]: ...
def job(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    queue: str | None = None,
    priority: int = 0,
    limit: "int | Limit | Sequence[int | Limit] | None" = None,
    holds: "str | Sequence[str]" = (),
    timeout: Any = None,
    stall: Any = None,
    cpu: Any = None,
    memory: Any = None,
    retry: Retry | None = None,
    codes: Mapping[str, Code] | None = None,
    application: str | None = None,
    log_fields: LogFields | None = None,
    log_settled: SettledFields | None = None,
) -> Any:
    """Make a kind of an async story `(ctx, payload)`, or of a sync function `(payload)`.

    A sync function is a job of one step, run in a child process. The function stays what it was;
    its kind is in its attribute `kind`. One attempt may take `timeout`; one that neither saves a
    step nor reports progress for `stall` is marked as stalled, with its stack in its timeline.
    Each of its jobs is claimed only where the pools it `holds` have a thing free, and has one of
    each from then on: `ctx.use` hands it out. `cpu` and `memory` are what each child of its steps
    may use. `application`: whose money it spends, for budgets; its own name where nothing is said.
    `log_fields`: what every log line about one of its jobs says besides, the engine's own lines too:
    made of the payload and the number of the attempt. `log_settled`: each claim that ends has a line at the level
    `info`, with these fields besides: made of the job's id, its state and the milliseconds it took.
    """

    def made(story: Any) -> Any:
        _check_job(story)
        asynchronous = is_async(story)
        called = name or story.__name__
        if retry is not None and not isinstance(retry, Retry):
            raise BadInput(
                say(
                    "{name}: retry is a Retry, such as Retry(attempts=3), not {retry!r}",
                    name=called,
                    retry=retry,
                )
            )
        takes, takes_nothing = _payload_of(story, first=1 if asynchronous else 0)
        story.kind = Kind(
            name=called,
            story=_of_one_argument(story, takes_nothing=takes_nothing)
            if asynchronous
            else _one_step(story, takes_nothing=takes_nothing),
            takes=takes,
            takes_nothing=takes_nothing,
            returns=returns(story),
            version=version,
            queue=queue or (called if version == 1 else f"{called}@{version}"),
            priority=priority,
            at_once=limits_of(called, limit),
            holds=_pools(called, holds),
            timeout=None if timeout is None else _positive("timeout", timeout, called),
            stall=None if stall is None else _positive("stall", stall, called),
            limits=Limits.read(called, timeout=None, cpu=cpu, memory=memory),
            retry=retry or Retry(),
            codes=codes or {},
            application=application or "",
            log_fields=log_fields,
            log_settled=log_settled,
            child=None if asynchronous else story,
        )
        return story

    return made if fn is None else made(fn)


def _check_job(fn: Any) -> None:
    """Refuse what cannot be stored by a name and found again by it."""
    wrong = what_it_is(fn)
    if wrong is None and getattr(fn, "__self__", None) is not None:
        wrong = say("a bound method: a job is a function, which gets its payload and no object")
    if wrong is None and not hasattr(fn, "__code__"):
        wrong = say("no function: write one with def that calls it")
    if wrong is not None:
        raise BadInput(say("{fn!r} cannot be a job, it is {found}", fn=fn, found=wrong))


def _payload_of(fn: Callable[..., Any], *, first: int) -> tuple[Any, bool]:
    """What a story takes besides its context: an annotation, and whether nothing at all."""
    parameters = [*inspect.signature(fn).parameters.values()][first:]
    if len(parameters) > 1:
        raise BadInput(
            say(
                "{name}: a story takes one payload, not {n}; put them together in a"
                " dataclass or a dict",
                name=fn.__name__,
                n=len(parameters),
            )
        )
    if not parameters:
        return None, True
    try:
        hints = get_type_hints(fn)
    except NameError:
        hints = {}  # a name only a type checker knows: the payload stays plain JSON
    takes = hints.get(parameters[0].name)
    return (None if takes is Any else takes), False


def _of_one_argument(story: Any, *, takes_nothing: bool) -> Story:
    if not takes_nothing:
        return story  # type: ignore[no-any-return]

    @wraps(story)
    async def alone(ctx: Context, payload: Any) -> Any:  # noqa: ARG001
        return await story(ctx)

    return alone


def _one_step(fn: Callable[..., Any], *, takes_nothing: bool) -> Story:
    check_can_travel(fn)

    async def story(ctx: Context, payload: Any) -> Any:
        return await ctx.step(fn.__name__, fn, *(() if takes_nothing else (payload,)))

    return story


def _check_name(what: str, name: str) -> None:
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise BadInput(
            say(
                "a {what} needs a printable name of 1 to {most} characters",
                what=what,
                most=NAME_LENGTH,
            )
        )


def _pools(kind: str, holds: Any) -> tuple[str, ...]:
    """What `holds=` of a job means."""
    named = (holds,) if isinstance(holds, str) else tuple(holds)
    for pool in named:
        if (
            not isinstance(pool, str)
            or not 0 < len(pool) <= POOL_LENGTH
            or not pool.isprintable()
        ):
            raise BadInput(
                say(
                    "{kind}: it holds things of pools by their names, not {pool!r}",
                    kind=kind,
                    pool=pool,
                )
            )
    if len(set(named)) < len(named):
        raise BadInput(
            say("{kind}: a job holds one thing of a pool; name each once", kind=kind)
        )
    return named


def _positive(what: str, given: Any, name: str) -> float:
    length = seconds(given)
    if length <= 0:
        raise BadInput(say("{name}: a {what} is longer than nothing", name=name, what=what))
    return length
