"""Whether the code that is installed now understands what is in flight. Asks, and changes nothing.

A job may wait for days, and meet another release than the one that took it in. What a story takes is
read as its annotation says; a saved step as the function says that made it. Which function that is
stands in the story's own text: where it can be read there, it is; where not, nothing is claimed.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import FunctionType, ModuleType
from typing import Any

from retoma.codec import Misfit, decode
from retoma.db import Database, migrations
from retoma.db.migrations import Room
from retoma.engine.handlers.kinds import Kind, Kinds
from retoma.engine.isolation.function import returns
from retoma.engine.query import OpenJob, OpenStep, open_jobs
from retoma.words import say

EXAMPLES = 5  # jobs of each finding that are named

Step = tuple[str, int]  # a name and a version


class What(StrEnum):
    """What is not understood."""

    KIND = "kind"
    VERSION = "version"
    PAYLOAD = "payload"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class Finding:
    """Jobs of one kind that the same thing is the matter with."""

    what: What
    kind: str
    version: int
    step: str | None
    why: str
    jobs: int
    examples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """Migrations that an upgrade will bring, by whose they are."""

    room: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What an upgrade would meet."""

    looked_at: int
    findings: tuple[Finding, ...]
    pending: tuple[Pending, ...]


async def check(database: Database, kinds: Kinds, rooms: Sequence[Room]) -> Report:
    """Look at every job that has not ended, a page at a time."""
    pending = []
    for room in rooms:
        numbers = (await migrations.status(database, room)).pending
        if numbers:
            pending.append(Pending(room.name, numbers))
    look = _Look(kinds)
    if (await migrations.status(database)).applied:
        while await look.at_next(database):
            pass
    return Report(look.jobs, tuple(look.findings()), tuple(pending))


class _Look:
    """What was seen so far."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = {kind.tag: kind for kind in kinds}
        self._names = {kind.name: kind.version for kind in kinds}
        self._steps = {tag: step_types(kind) for tag, kind in self._kinds.items()}
        self._found: dict[tuple[What, str, int, str | None], Finding] = {}
        self._last: dict[tuple[What, str, int, str | None], int] = {}
        self._after = 0
        self.jobs = 0

    async def at_next(self, database: Database) -> bool:
        """A page more; False where there was none."""
        jobs, steps = await database.read(lambda tx: open_jobs(tx, self._after))
        self._at(jobs, steps)
        return bool(jobs)

    def _at(self, jobs: Sequence[OpenJob], steps: Sequence[OpenStep]) -> None:
        self.jobs += len(jobs)
        self._after = max((job.id for job in jobs), default=self._after)
        tags = {job.id: (job.kind, job.version) for job in jobs}
        for job in jobs:
            self._job(job)
        for step in steps:
            self._step(step, *tags[step.job])

    def findings(self) -> Iterator[Finding]:
        yield from sorted(self._found.values(), key=lambda each: (each.kind, each.version))

    def _job(self, job: OpenJob) -> None:
        kind = self._kinds.get(f"{job.kind}@{job.version}")
        if kind is not None:
            why = _misfit(job.payload, kind.takes)
            if why is not None:
                self._note(What.PAYLOAD, (job.kind, job.version), None, why, job.id)
        elif job.kind in self._names:
            why = say("the code knows version {known}", known=self._names[job.kind])
            self._note(What.VERSION, (job.kind, job.version), None, why, job.id)
        else:
            why = say("nobody knows this kind")
            self._note(What.KIND, (job.kind, job.version), None, why, job.id)

    def _step(self, step: OpenStep, kind: str, version: int) -> None:
        types = self._steps.get(f"{kind}@{version}", {})
        wanted = types.get((step.name, step.version))
        if wanted is None:
            return
        why = _misfit(step.value, wanted)
        if why is not None:
            self._note(What.STEP, (kind, version), step.name, why, step.job)

    def _note(
        self, what: What, tag: tuple[str, int], step: str | None, why: str, job: int
    ) -> None:
        about = (what, *tag, step)
        if self._last.get(about) == job:
            return  # one job, several items of a step
        self._last[about] = job
        seen = self._found.get(about) or Finding(*about, why, 0, ())
        examples = (*seen.examples, job)[:EXAMPLES]
        self._found[about] = replace(seen, jobs=seen.jobs + 1, examples=examples)


def _misfit(text: str, wanted: Any) -> str | None:
    try:
        decode(text, wanted)
    except Misfit as error:
        return str(error)
    return None


# — which type a step has, by the text of its story —


def step_types(kind: Kind) -> dict[Step, Any]:
    """What each step of a story gives, as far as its text tells."""
    story = inspect.unwrap(kind.story)
    if not isinstance(story, FunctionType):
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(story)))
        known = inspect.getclosurevars(story)
    except (OSError, SyntaxError, TypeError, ValueError):
        return {}
    names = {**known.globals, **known.nonlocals}
    context = next(iter(inspect.signature(story).parameters), "")
    found: dict[Step, Any] = {}
    told: set[Step] = set()
    for step, fn in _steps(tree, context, names):
        wanted = returns(fn)
        if step in told and found.get(step) != wanted:
            found.pop(step, None)  # by either of two ways: nobody can tell which
        elif wanted is not None:
            found[step] = wanted
        told.add(step)
    return found


def _steps(
    tree: ast.AST, context: str, names: dict[str, Any]
) -> Iterator[tuple[Step, Callable[..., Any]]]:
    for node in ast.walk(tree):
        place = _step_place(node, context)
        if place is None or not isinstance(node, ast.Call) or len(node.args) <= place:
            continue
        name, fn = _value(node.args[0], names), _value(node.args[place], names)
        said = [each.value for each in node.keywords if each.arg == "version"]
        version = _value(said[0], names) if said else 1
        if isinstance(name, str) and isinstance(version, int) and callable(fn):
            yield (name, version), fn


def _step_place(node: ast.AST, context: str) -> int | None:
    """Where among the arguments of `ctx.step` or `ctx.each` the function is."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    if not (isinstance(node.func.value, ast.Name) and node.func.value.id == context):
        return None
    return {"step": 1, "each": 2}.get(node.func.attr)


def _value(node: ast.AST, names: dict[str, Any]) -> Any:
    """What a name stands for; None where only running the story would tell."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        of = _value(node.value, names)
        if isinstance(of, ModuleType | FunctionType | type):
            return getattr(of, node.attr, None)
    return None
