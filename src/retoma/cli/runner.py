"""`retoma runner`: one runner in this process, or a parent that keeps several alive."""

import asyncio
import importlib
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retoma import logs, settings
from retoma.bootstrap import build_retoma, build_traces, install_applications
from retoma.console.exits import Exit, Stop
from retoma.console.fleet import Fleet
from retoma.console.processes import (
    RunnerProcess,
    leave_anyway,
    on_stop,
    tune_interpreter,
    when_parent_ends,
)
from retoma.engine.ports import Clock
from retoma.library import Retoma
from retoma.settings import Settings
from retoma.words import say

HOW = say("write --app package.module:app")

HANGERS_ON = 1.0  # seconds for threads to end after all is settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asked for; None: as the settings say."""

    app: str | None
    processes: int
    slots: int | None
    name: str | None
    database: str | None
    until_idle: bool
    with_parent: bool


def run(wanted: Wanted) -> None:
    chosen = settings.read(
        database_url=wanted.database, slots=wanted.slots, runner_name=wanted.name
    )
    logs.configure(chosen.log_level)
    if wanted.processes == 1:
        run_on_the_quickest_loop(_one(app_of(wanted.app, chosen), wanted, chosen))
    elif not asyncio.run(_many(wanted, chosen)):
        raise Stop(Exit.FAILED, say("a runner did not leave in order; its jobs are taken over"))


def app_of(address: str | None, chosen: Settings) -> Retoma:
    """The app of whoever starts us, or a bare house; with the applications the settings name."""
    if address is None and not chosen.applications:
        raise Stop(
            Exit.USAGE,
            say("nothing to run: {how}, or set RETOMA_APPLICATIONS", how=HOW),
        )
    app = build_retoma(chosen) if address is None else load(address)
    install_applications(app, chosen)
    return app


def load(address: str) -> Retoma:
    """The Retoma behind `package.module:app`, looked for in this folder first."""
    module, colon, name = address.partition(":")
    if not (module and colon and name):
        raise Stop(Exit.USAGE, say("{address!r} names no app: {how}", address=address, how=HOW))
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: Any = _imported(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise Stop(
                Exit.USAGE,
                say("{module} has no {name!r}: {how}", module=module, name=name, how=HOW),
            )
        found = getattr(found, part)
    if not isinstance(found, Retoma):
        kind = type(found).__name__
        raise Stop(
            Exit.USAGE,
            say(
                "{address} is a {kind}, not a Retoma: {how}",
                address=address,
                kind=kind,
                how=HOW,
            ),
        )
    return found


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # One inside the app's own module is its bug, not a slip of the pen here.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise Stop(
            Exit.USAGE,
            say(
                "there is no module {module!r} here or on sys.path: {how}",
                module=error.name,
                how=HOW,
            ),
        ) from error


def run_on_the_quickest_loop(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with tune_interpreter(), asyncio.Runner(loop_factory=factory) as loop:
        loop.run(main)
        leave_anyway(HANGERS_ON)


async def _one(app: Retoma, wanted: Wanted, chosen: Settings) -> None:
    if wanted.database is not None:
        app.url = wanted.database
    app.traces = app.traces or build_traces(chosen)
    app.knobs.fix(chosen.fixed)
    opening = asyncio.ensure_future(app.database())

    def stop() -> None:
        opening.cancel()  # nothing is claimed yet; once it is open this does nothing
        app.stop()

    on_stop(stop)
    if wanted.with_parent:
        when_parent_ends(stop)
    try:
        await opening
        await app.run(
            until_idle=wanted.until_idle,
            name=chosen.runner_name,
            host=chosen.host,
            slots=chosen.slots,
            lease=chosen.lease,
            beat=chosen.beat,
            tick=chosen.tick,
            grace=chosen.grace,
            let_go=chosen.let_go,
            loop_limit=chosen.loop_limit,
            stop_stalled=chosen.stop_stalled,
            step_memory=chosen.step_memory,
            keep=chosen.keep,
        )
    except asyncio.CancelledError:
        if not opening.cancelled():
            raise
    finally:
        await app.close()


async def _many(wanted: Wanted, chosen: Settings) -> bool:
    arguments = ["--slots", str(chosen.slots)]
    if wanted.app is not None:
        arguments += ["--app", wanted.app]
    if wanted.database is not None:
        arguments += ["--database", wanted.database]
    if wanted.until_idle:
        arguments.append("--until-idle")

    async def start(name: str) -> RunnerProcess:
        return await RunnerProcess.start(arguments, name=name)

    fleet = Fleet(start, Clock())
    on_stop(fleet.stop, at_once=fleet.kill)
    if wanted.with_parent:
        when_parent_ends(fleet.stop)
    names = [f"{chosen.runner_name}-{n}" for n in range(1, wanted.processes + 1)]
    return await fleet.run(names)
