"""Sync steps run elsewhere: in spawned child processes, or, where asked for, in a thread.

What reads bytes of strangers runs in confined children: they have no environment, no network and no files
but code and what they are to read, and an answer of theirs is a text, never an object.

A child that dies, hangs or eats memory costs its own step and no neighbour. Only what can be named
can travel: a function at the top of a module, its arguments and its result as JSON text. For as
long as a call lasts its child keeps a file of notes: its pid, and its stacks when it is asked for
them (SIGUSR1), when it crashes, and when its memory or its CPU time is used up.
"""

import asyncio
import contextlib
import contextvars
import ctypes
import faulthandler
import importlib
import math
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Final, TextIO

from pebble import ProcessExpired

from retoma.codec import decode, encode
from retoma.engine.isolation.children import Children, Confined, WithoutMain
from retoma.engine.isolation.confine import confine
from retoma.engine.isolation.function import Types, parameter_types, read_as, returns
from retoma.engine.isolation.off_loop import off_loop
from retoma.engine.isolation.scratch import scratch
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput, Permanent, Transient
from retoma.engine.rules.job import Held
from retoma.engine.rules.size import size
from retoma.words import say

CHILDREN = max(2, os.cpu_count() or 1)
AHEAD = CHILDREN  # calls that lie ready, so that no child rests while we hear of its last one
THREADS = 32
LOOK = 0.02  # seconds between two looks at a child's notes
LOOKS = 15  # then it is taken not to answer
BROKEN = 3  # pools that may break before a call has begun
LEAST_MEMORY = 64 * 2**20  # bytes: a child that has done nothing yet needs half of that
OUT_OF_MEMORY = 83  # the exit code by which a child says so
STACK = 8_000  # characters of a child's notes
LONGEST_ERROR = 2_000  # characters of what a confined child raised
MAIN = ("__main__", "__mp_main__")
PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call may use. None: as much as there is."""

    timeout: float | None = None  # seconds by the clock on the wall
    cpu: float | None = None  # seconds of processor time, of a child
    memory: int | None = None  # bytes, of a child and all it has loaded

    @classmethod
    def read(cls, name: str, *, timeout: Any, cpu: Any, memory: Any) -> "Limits":
        return cls(
            timeout=_length(name, "timeout", timeout),
            cpu=_length(name, "cpu", cpu),
            memory=_memory(name, memory),
        )

    def over(self, others: "Limits") -> "Limits":
        """Its own where it has them, else those of the other."""
        return Limits(
            timeout=self.timeout,
            cpu=others.cpu if self.cpu is None else self.cpu,
            memory=others.memory if self.memory is None else self.memory,
        )


NO_LIMITS = Limits()
# Where a call says none of its own.
OF_CONFINED = Limits(timeout=60.0, cpu=30.0, memory=512 * 2**20)
SAID, FAILED = "=", "!"  # how an answer of a confined child begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """What a confined child says in place of a value."""

    type: str
    message: str
    code: str


# What is raised here when a confined child says that it was raised there.
ERRORS: Final[Mapping[str, type[Exception]]] = {
    each.__name__: each for each in (BadInput, Permanent, Transient, TimeoutError, ValueError)
}


class ChildDied(Transient):
    """The process of a step is gone: how it went, and what it had noted before."""

    def __init__(self, message: str, *, code: str, exit_code: int, stack: str) -> None:
        super().__init__(message, code=code)
        self.exit_code = exit_code
        self.signal = _signal_name(exit_code)
        self.stack = stack

    @property
    def details(self) -> dict[str, object]:
        told = {"exit_code": self.exit_code, "signal": self.signal, "child_stack": self.stack}
        return {name: value for name, value in told.items() if value not in (None, "")}


class Isolate:
    """The children and threads of one life of a runner; none is started before it is needed."""

    def __init__(self, children: type[Children] = Children) -> None:
        self._new_pool = children
        self._pools: dict[bool, Children] = {}  # by whether they are confined
        self._folder: Path | None = None
        self._numbers = count(1)
        self._calls: set[_Call] = set()
        self._in_threads: set[asyncio.Future[Any]] = set()
        # Whoever waits for a child waits here, where he can be stopped before anything is begun.
        self._room = asyncio.Semaphore(CHILDREN + AHEAD)
        self._free_threads = asyncio.Semaphore(THREADS)

    @property
    def deserted(self) -> int:
        """Threads still at work for somebody who has gone; a thread cannot be stopped."""
        return sum(home.done() for home in self._in_threads)

    async def in_child(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        owner: Held | None = None,
        limits: Limits = NO_LIMITS,
        confined: bool = False,
    ) -> str:
        """The JSON text of what `fn` returned, in a process of its own.

        `confined`: it reads bytes of strangers. What it raises comes home as one of the engine's errors,
        by its code, or as a RuntimeError.
        """
        if confined:
            limits = _all_set(limits)
        module, name = _address(fn)
        types = _types(fn)
        arguments = [encode(value, types.at(place)) for place, value in enumerate(args)]
        async with self._room:
            for _ in range(BROKEN):
                notes = self._note()
                told = [str(notes), module, name, arguments, limits.memory, limits.cpu]
                pool, home = self._schedule(told, confined)
                call = _Call(f"{module}.{name}", limits, owner, notes, home)
                self._calls.add(call)
                try:
                    answer = await call.came_home()
                    return _opened(answer) if confined else answer
                except ProcessExpired as error:
                    raise call.died(error.exitcode) from error
                except BrokenProcessPool as error:
                    self._drop(pool)
                    if call.pid is not None:
                        raise call.died(1) from error
                finally:
                    self._calls.discard(call)
                    call.let_go()
        raise Transient(
            say("{step}: no child process can be started", step=f"{module}.{name}"),
            code="child_died",
        )

    async def read(
        self,
        fn: Callable[..., Any],
        content: bytes,
        *args: Any,
        owner: Held | None = None,
        limits: Limits = NO_LIMITS,
    ) -> Any:
        """What `fn(path, *args)` makes of a file with these bytes of a stranger, in a confined child."""
        path = self._notes() / f"read-{next(self._numbers)}"
        try:
            await off_loop(len(content), path.write_bytes, content)
            text = await self.in_child(
                fn, (str(path), *args), owner=owner, limits=limits, confined=True
            )
        finally:
            path.unlink(missing_ok=True)
        return await off_loop(len(text), read_as, text, fn)

    async def in_thread(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What `fn` returned. A thread that is left alone keeps its seat until it has ended."""
        await self._free_threads.acquire()
        loop = asyncio.get_running_loop()
        home = loop.create_future()
        self._in_threads.add(home)
        work = partial(_work, fn, args, loop, partial(self._thread_ended, home))
        # A daemon: one that hangs must not keep its process from ending.
        thread = threading.Thread(
            target=contextvars.copy_context().run, args=(work,), name="retoma-step", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the system has none left: its seat is free again
            self._thread_ended(home, None, Transient(f"{fn!r}: {error}"))
        return await home

    def busy(self, owner: Held) -> bool:
        return any(call.owner == owner for call in self._calls)

    async def stacks(self, owner: Held) -> list[str]:
        """Where the children at work for this claim are just now."""
        calls = [call for call in self._calls if call.owner == owner]
        return [text for text in await asyncio.gather(*(c.stack() for c in calls)) if text]

    def close(self) -> None:
        for pool in list(self._pools.values()):
            self._drop(pool)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _schedule(
        self, told: list[Any], confined: bool
    ) -> "tuple[Children, asyncio.Future[Any]]":
        call = _call_confined if confined else _call
        pool = self._pool(confined)
        try:
            return pool, asyncio.wrap_future(pool.schedule(call, args=told))
        except RuntimeError:  # broken: an idle child was killed
            self._drop(pool)
            pool = self._pool(confined)
            return pool, asyncio.wrap_future(pool.schedule(call, args=told))

    def _pool(self, confined: bool) -> Children:
        if confined not in self._pools:
            born: Callable[..., None] = _born
            told: list[Any] = [os.getpid()]
            if confined:
                born = _born_confined
                told += [str(scratch()), str(self._notes())]
            self._pools[confined] = self._new_pool(
                CHILDREN,
                context=Confined() if confined else WithoutMain(),
                initializer=born,
                initargs=told,
            )
        return self._pools[confined]

    def _drop(self, pool: Children) -> None:
        confined = next((each for each, of in self._pools.items() if of is pool), None)
        if confined is None:
            return  # somebody else has
        del self._pools[confined]
        pool.stop()  # type: ignore[no-untyped-call]
        with contextlib.suppress(TimeoutError):
            pool.join(5)

    def _note(self) -> Path:
        return self._notes() / str(next(self._numbers))

    def _notes(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="notes-", dir=scratch()))
        return self._folder

    def _thread_ended(
        self, home: "asyncio.Future[Any]", value: Any, error: BaseException | None
    ) -> None:
        self._in_threads.discard(home)
        self._free_threads.release()
        if home.done():
            return
        if error is None:
            home.set_result(value)
        else:
            home.set_exception(error)


class _Call:
    """One call of a function in a child, and the notes that the child keeps of it."""

    __slots__ = ("home", "limits", "name", "notes", "owner")

    def __init__(
        self,
        name: str,
        limits: Limits,
        owner: Held | None,
        notes: Path,
        home: "asyncio.Future[Any]",
    ) -> None:
        self.name = name
        self.limits = limits
        self.owner = owner
        self.notes = notes
        self.home = home

    @property
    def pid(self) -> int | None:
        """None: its function has not begun."""
        pid, line, _ = self._read()
        return int(pid) if line else None

    async def came_home(self) -> str:
        if self.limits.timeout is not None:
            await self.in_time(self.limits.timeout)
        return str(await asyncio.shield(self.home))

    def let_go(self) -> None:
        """Nobody waits for it any more: if it has begun its child is killed, else it never begins."""
        if not self.home.done():
            with contextlib.suppress(FileExistsError):
                # Whoever makes this file first, we or the child, has decided it. (A call that is
                # canceled before it began would cost the child that is just being started.)
                self.notes.touch(exist_ok=False)
                self.home.add_done_callback(self._forget)
                return
            self.home.cancel()
        self._forget(self.home)

    def _forget(self, home: "asyncio.Future[Any]") -> None:
        self.notes.unlink(missing_ok=True)
        if not home.cancelled():
            home.exception()

    async def in_time(self, limit: float) -> None:
        """Return when it is done; TimeoutError when its function has taken longer than it may."""
        await asyncio.wait([self.home], timeout=LOOK)  # most are done before anybody looks
        while not self.home.done() and self.pid is None:
            await asyncio.wait([self.home], timeout=LOOK)
        if not self.home.done():
            await asyncio.wait([self.home], timeout=limit)
        if not self.home.done():
            raise _noted(
                TimeoutError(f"{self.name} took longer than {limit:g} s"), await self.stack()
            )

    async def stack(self) -> str:
        """Where its child is now; empty where it does not say."""
        pid = self.pid
        if pid is None or self.home.done():
            return ""
        before = len(self._noted)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
        seen = ""
        for _ in range(LOOKS):
            await asyncio.wait([self.home], timeout=LOOK)
            now = self._noted[before:]
            if now and now == seen:
                break
            seen = now
        return seen.strip()

    def died(self, exit_code: int) -> Exception:
        stack = self._noted[-STACK:].strip()
        if exit_code == OUT_OF_MEMORY:
            limit = self.limits.memory
            had = "" if limit is None else f": it may use {limit:,} bytes"
            return ChildDied(
                f"{self.name} ran out of memory{had}",
                code="out_of_memory",
                exit_code=exit_code,
                stack=stack,
            )
        if exit_code == -signal.SIGXCPU and self.limits.cpu is not None:
            late = f"{self.name} used more than {self.limits.cpu:g} s of processor time"
            return _noted(TimeoutError(late), stack)
        name = _signal_name(exit_code)
        told = f"exit code {exit_code}" if name is None else f"exit code {exit_code} ({name})"
        return ChildDied(
            f"{self.name}: its process ended with {told}",
            code="child_died",
            exit_code=exit_code,
            stack=stack,
        )

    @property
    def _noted(self) -> str:
        return self._read()[2]

    def _read(self) -> tuple[str, str, str]:
        try:
            return self.notes.read_text(errors="replace").partition("\n")
        except FileNotFoundError:
            return "", "", ""


def check_can_travel(fn: Callable[..., Any]) -> None:
    """Refuse a lambda or a closure where it is given, not where it is run."""
    module = getattr(fn, "__module__", None)
    name = getattr(fn, "__qualname__", "")
    if not module or not name.isidentifier():
        raise BadInput(
            say(
                "{step!r} is sync and not at the top of a module, so it cannot run"
                " in a child process: move it there, make it async, or ask for"
                ' where="thread"',
                step=name or fn,
            )
        )


def check_can_be_loaded(fn: Callable[..., Any]) -> None:
    """Refuse what is only in the script that was started: a child never runs that."""
    if fn.__module__ in MAIN:
        raise BadInput(
            say(
                "{step!r} is sync and stands in the script that was started, which no child process"
                " runs again: move it into a module and import it, or make it async",
                step=fn.__qualname__,
            )
        )


def _address(fn: Callable[..., Any]) -> tuple[str, str]:
    check_can_travel(fn)
    check_can_be_loaded(fn)
    return fn.__module__, fn.__qualname__


def _all_set(limits: Limits) -> Limits:
    timeout = OF_CONFINED.timeout if limits.timeout is None else limits.timeout
    return replace(limits.over(OF_CONFINED), timeout=timeout)


def _opened(answer: str) -> str:
    """The text that a confined child answers; an error of ours where it says that it failed."""
    if answer.startswith(SAID):
        return answer[len(SAID) :]
    told: Failed = decode(answer.removeprefix(FAILED), Failed)
    raised = ERRORS.get(told.type)
    if raised is None:
        raise RuntimeError(f"{told.type}: {told.message}")
    if issubclass(raised, Transient | Permanent):
        raise raised(told.message, code=told.code)
    raise raised(told.message)


def _length(name: str, what: str, given: Any) -> float | None:
    if given is None:
        return None
    length = seconds(given)
    if length <= 0:
        raise BadInput(say("{name}: a {what} is longer than nothing", name=name, what=what))
    return length


def _memory(name: str, given: Any) -> int | None:
    if given is None:
        return None
    memory = size(given)
    if memory < LEAST_MEMORY:
        raise BadInput(
            say(
                "{name}: a child needs some {least:,} bytes for itself, not {memory:,}",
                name=name,
                least=LEAST_MEMORY,
                memory=memory,
            )
        )
    return memory


def _signal_name(exit_code: int) -> str | None:
    if exit_code >= 0:
        return None
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _noted(error: Exception, stack: str) -> Exception:
    if stack:
        error.add_note(f"its child stood here:\n{stack}")
    return error


def _work(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    loop: asyncio.AbstractEventLoop,
    ended: Callable[[Any, BaseException | None], None],
) -> None:
    """In the thread: do it, and tell the loop, if there still is one."""
    value: Any = None
    raised: BaseException | None = None
    try:
        value = fn(*args)
    except StopIteration as error:  # no future takes one
        raised = RuntimeError(f"{fn!r} raised StopIteration")
        raised.__cause__ = error
    except BaseException as error:  # noqa: BLE001 — raised again where it is waited for
        raised = error
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(ended, value, raised)


# — in the child —


def _born(parent: int) -> None:
    """Die with the runner, at once when told to, and never of being asked for a stack."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _born_confined(parent: int, readable: str, writable: str) -> None:
    _born(parent)
    tracker: Any = resource_tracker._resource_tracker  # noqa: SLF001
    if tracker._fd is not None:  # noqa: SLF001
        os.close(tracker._fd)  # noqa: SLF001 — what it is told, it removes at the end
        tracker._fd = None  # noqa: SLF001
    confine([readable], [writable])


def _call_confined(*told: Any) -> str:
    """As `_call`, with nothing but text for an answer."""
    try:
        return SAID + _call(*told)
    except Exception as error:  # noqa: BLE001 — it is raised on the other side
        names = [each.__name__ for each in type(error).__mro__]
        known = next((each for each in names if each in ERRORS), names[0])
        code = error.code if isinstance(error, Transient | Permanent) else ""
        message = str(error)[:LONGEST_ERROR].encode("utf-8", "replace").decode()
        return FAILED + encode(Failed(type=known, message=message, code=code))


def _call(
    notes: str,
    module: str,
    name: str,
    arguments: list[str],
    memory: int | None,
    cpu: float | None,
) -> str:
    fn = getattr(importlib.import_module(module), name)
    types = _types(fn)
    values = [decode(text, types.at(place)) for place, text in enumerate(arguments)]
    try:
        file = Path(notes).open("x")  # noqa: SIM115 — closed below
    except FileExistsError:
        return "null"  # nobody waits for it any more
    with file, _noting(file):
        try:
            with _limited(memory, cpu):
                return encode(fn(*values), returns(fn))
        except MemoryError:
            # What it has gathered stays with this process: the next call gets another.
            file.write(traceback.format_exc())
            file.flush()
            os._exit(OUT_OF_MEMORY)
        except Exception as error:
            told = _that_travels(error)
            if told is error:
                raise
            raise told from error


@contextlib.contextmanager
def _noting(file: TextIO) -> Iterator[None]:
    file.write(f"{os.getpid()}\n")
    file.flush()
    faulthandler.enable(file)
    faulthandler.register(signal.SIGUSR1, file)
    faulthandler.register(signal.SIGXCPU, file, chain=True)
    try:
        yield
    finally:
        faulthandler.unregister(signal.SIGXCPU)
        faulthandler.unregister(signal.SIGUSR1)
        faulthandler.disable()


@contextlib.contextmanager
def _limited(memory: int | None, cpu: float | None) -> Iterator[None]:
    before = []
    if memory is not None:
        before.append(_set_limit(resource.RLIMIT_DATA, memory))
    if cpu is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        before.append(
            _set_limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + cpu))
        )
    try:
        yield
    finally:
        for which, limits in before:
            resource.setrlimit(which, limits)


def _set_limit(which: int, most: int) -> tuple[int, tuple[int, int]]:
    """The soft limit, which this process may lift again; what it was before."""
    soft, hard = resource.getrlimit(which)
    resource.setrlimit(which, (most if hard < 0 else min(most, hard), hard))
    return which, (soft, hard)


@lru_cache  # of functions at the top of a module alone
def _types(fn: Callable[..., Any]) -> Types:
    return parameter_types(fn)


def _that_travels(error: Exception) -> Exception:
    """Itself, or, where it cannot be rebuilt on the other side, what it said."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 — our own, a moment old
    except Exception:  # noqa: BLE001 — whatever its class does when it is rebuilt
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
