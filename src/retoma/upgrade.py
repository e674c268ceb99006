"""Check whether the installed code can read the open jobs. Read-only.

A job may wait for days and then run on a newer release. This decodes each payload with the handler's
annotation, and each saved step with the return annotation of the step's function. The function is found
in the handler's source; steps whose function is not found there are not checked.
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

EXAMPLES = 5  # job ids per finding

Step = tuple[str, int]  # a name and a version


class What(StrEnum):
    """What cannot be read."""

    KIND = "kind"
    VERSION = "version"
    PAYLOAD = "payload"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class Finding:
    """Jobs of one kind with the same problem."""

    what: What
    kind: str
    version: int
    step: str | None
    why: str
    jobs: int
    examples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """Pending migrations of the engine or an application."""

    room: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of the check."""

    looked_at: int
    findings: tuple[Finding, ...]
    pending: tuple[Pending, ...]


async def check(database: Database, kinds: Kinds, rooms: Sequence[Room]) -> Report:
    """Check every open job, page by page."""
    pending = []
    for room in rooms:
        numbers = (await migrations.status(database, room)).pending
        if numbers:
            pending.append(Pending(room.name, numbers))
    checker = _Checker(kinds)
    if (await migrations.status(database)).applied:
        while await checker.check_page(database):
            pass
    return Report(checker.jobs, tuple(checker.findings()), tuple(pending))


class _Checker:
    """Checks jobs page by page and collects the findings."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = {kind.tag: kind for kind in kinds}
        self._names = {kind.name: kind.version for kind in kinds}
        self._steps = {tag: step_types(kind) for tag, kind in self._kinds.items()}
        self._findings: dict[tuple[What, str, int, str | None], Finding] = {}
        self._last: dict[tuple[What, str, int, str | None], int] = {}
        self._after = 0
        self.jobs = 0

    async def check_page(self, database: Database) -> bool:
        """Check the next page; False if there is none."""
        jobs, steps = await database.read(lambda tx: open_jobs(tx, self._after))
        self._check_jobs(jobs, steps)
        return bool(jobs)

    def _check_jobs(self, jobs: Sequence[OpenJob], steps: Sequence[OpenStep]) -> None:
        self.jobs += len(jobs)
        self._after = max((job.id for job in jobs), default=self._after)
        tags = {job.id: (job.kind, job.version) for job in jobs}
        for job in jobs:
            self._job(job)
        for step in steps:
            self._step(step, *tags[step.job])

    def findings(self) -> Iterator[Finding]:
        yield from sorted(
            self._findings.values(), key=lambda finding: (finding.kind, finding.version)
        )

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
            why = say("the code does not know this kind")
            self._note(What.KIND, (job.kind, job.version), None, why, job.id)

    def _step(self, step: OpenStep, kind: str, version: int) -> None:
        types = self._steps.get(f"{kind}@{version}", {})
        annotation = types.get((step.name, step.version))
        if annotation is None:
            return
        why = _misfit(step.value, annotation)
        if why is not None:
            self._note(What.STEP, (kind, version), step.name, why, step.job)

    def _note(
        self, what: What, tag: tuple[str, int], step: str | None, why: str, job: int
    ) -> None:
        about = (what, *tag, step)
        if self._last.get(about) == job:
            return  # several items of one step
        self._last[about] = job
        seen = self._findings.get(about) or Finding(*about, why, 0, ())
        examples = (*seen.examples, job)[:EXAMPLES]
        self._findings[about] = replace(seen, jobs=seen.jobs + 1, examples=examples)


def _misfit(text: str, annotation: Any) -> str | None:
    try:
        decode(text, annotation)
    except Misfit as error:
        return str(error)
    return None


def step_types(kind: Kind) -> dict[Step, Any]:
    """Return the type of each step's result, as far as the handler's source shows it."""
    handler = inspect.unwrap(kind.story)
    if not isinstance(handler, FunctionType):
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(handler)))
        known = inspect.getclosurevars(handler)
    except (OSError, SyntaxError, TypeError, ValueError):
        return {}
    names = {**known.globals, **known.nonlocals}
    context = next(iter(inspect.signature(handler).parameters), "")
    types: dict[Step, Any] = {}
    seen: set[Step] = set()
    for step, fn in _steps(tree, context, names):
        result = returns(fn)
        if step in seen and types.get(step) != result:
            types.pop(step, None)  # ambiguous: two functions with different types
        elif result is not None:
            types[step] = result
        seen.add(step)
    return types


def _steps(
    tree: ast.AST, context: str, names: dict[str, Any]
) -> Iterator[tuple[Step, Callable[..., Any]]]:
    for node in ast.walk(tree):
        index = _function_index(node, context)
        if index is None or not isinstance(node, ast.Call) or len(node.args) <= index:
            continue
        name, fn = _value(node.args[0], names), _value(node.args[index], names)
        versions = [keyword.value for keyword in node.keywords if keyword.arg == "version"]
        version = _value(versions[0], names) if versions else 1
        if isinstance(name, str) and isinstance(version, int) and callable(fn):
            yield (name, version), fn


def _function_index(node: ast.AST, context: str) -> int | None:
    """Return the position of the function among the arguments of `ctx.step` or `ctx.each`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    if not (isinstance(node.func.value, ast.Name) and node.func.value.id == context):
        return None
    return {"step": 1, "each": 2}.get(node.func.attr)


def _value(node: ast.AST, names: dict[str, Any]) -> Any:
    """Evaluate a constant or a name; None if only running the handler would show the value."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        of = _value(node.value, names)
        if isinstance(of, ModuleType | FunctionType | type):
            return getattr(of, node.attr, None)
    return None
