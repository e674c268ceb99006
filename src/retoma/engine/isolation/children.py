"""A pool of child processes in which a child that dies answers for itself alone.

It is pebble's, but for who is to blame. Pebble looks for dead children in one thread and hears what
children say in another. Of one that died before it was heard it believes that it had nothing to do: then
it declares the pool broken, and every neighbour's call with it; or, beside a neighbour that is busy, it
forgets the call of the dead for ever. Here a death is judged when all that the dead has said was heard.
"""

import builtins
import io
import os
import pickle
import subprocess
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from enum import EnumType
from multiprocessing import (
    context,
    popen_spawn_posix,
    reduction,
    resource_tracker,
    spawn,
    util,
)
from typing import Any, ClassVar

from pebble import ProcessExpired, ProcessPool
from pebble.common.types import RemoteException, Result, ResultStatus
from pebble.pool.channel import Channel
from pebble.pool.process import (
    Acknowledgement,
    NoMessage,
    PoolManager,
    TaskProblem,
    TaskResult,
    WorkerManager,
    dictionary_values,
)

from retoma.engine.isolation.confine import bare_environment

PIPE = 2_000  # messages: more than a pipe holds, so what was in it then has been heard since
STILLBORN = (
    6  # children in a row that ended before they were given anything: none can be started
)


# What the messages of a confined child may be made of: no class of theirs runs code of the child's here.
PLAIN = {
    (each.__module__, each.__qualname__): each
    for each in (Acknowledgement, Result, ResultStatus, TaskProblem, TaskResult)
} | {
    (RemoteException.__module__, "RemoteException.rebuild_exception"): (
        RemoteException.rebuild_exception
    )
}
LONGEST_MESSAGE = 64 * 2**20  # bytes
UNSAID = ("authkey", "sys_argv", "orig_dir", "dir")  # of its parent, to a confined child


class _Started(subprocess.Popen[bytes]):
    """Waited for by multiprocessing, not by itself."""

    def __del__(self) -> None:
        pass


class _Popen(popen_spawn_posix.Popen):
    """A spawned child that does not load the module its parent was started with.

    That module may be a script that submits jobs in its first lines: each child would submit them
    again. The standard library has no switch for it, so we write what the child reads at its start.
    """

    _fds: list[int]  # that the child inherits, and no others
    confined = False

    def _launch(self, process_obj: Any) -> None:
        tracker: Any = resource_tracker.getfd()
        orders = self._orders(process_obj)
        ours, alive = os.pipe()  # it ends when the child does
        read, write = os.pipe()
        self.finalizer = util.Finalize(self, _close, (ours, write))
        self.sentinel = ours
        try:
            command: Any = spawn.get_command_line(tracker_fd=tracker, pipe_handle=read)
            self._fds.extend([tracker, read, alive])
            self.pid = self._started(command).pid
        finally:
            os.close(read)
            os.close(alive)
        with open(write, "wb", closefd=False) as pipe:
            pipe.write(orders)

    def _started(self, command: list[str]) -> _Started:
        standard = subprocess.DEVNULL if self.confined else None
        return _Started(
            command,
            executable=spawn.get_executable(),
            pass_fds=self._fds,
            env=bare_environment() if self.confined else None,
            stdin=standard,
            stdout=standard,
            stderr=standard,
        )

    def _orders(self, process_obj: Any) -> bytes:
        prepared = spawn.get_preparation_data(process_obj.name)
        unsaid = UNSAID if self.confined else ()
        told = {
            key: value
            for key, value in prepared.items()
            if not key.startswith("init_main") and key not in unsaid
        }
        buffer = io.BytesIO()
        context.set_spawning_popen(self)
        try:
            reduction.dump(told, buffer)
            reduction.dump(process_obj, buffer)
        finally:
            context.set_spawning_popen(None)
        return buffer.getvalue()


def _close(*descriptors: int) -> None:
    for each in descriptors:
        os.close(each)


class _ConfinedPopen(_Popen):
    """A child that is told nothing: no environment, no arguments, no descriptors but the pool's."""

    confined = True


class _Process(context.SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  # the name that multiprocessing calls
        return _Popen(process_obj)


class _ConfinedProcess(context.SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  # as above
        return _ConfinedPopen(process_obj)


class WithoutMain(context.SpawnContext):
    """Starts processes that load what they are given to do, and not the script of their parent."""

    Process: ClassVar[type[context.SpawnProcess]] = _Process


class Confined(WithoutMain):
    """Starts processes that read bytes of strangers; what they answer is believed to be plain values."""

    Process = _ConfinedProcess


class _PlainChannel(Channel):
    """Hears plain values: a child that a stranger's file has taken over may send anything."""

    def recv(self) -> Any:
        said = self.reader.recv_bytes(LONGEST_MESSAGE)
        try:
            return _PlainReader(io.BytesIO(said)).load()
        except Exception as error:  # whatever bytes do to who reads them: this pool is broken
            raise OSError("a confined child answered with no message") from error


def _member(of: Any, name: str) -> Any:
    """What the first Pythons of 3.11 write for a member of an enum: `getattr`, which may not reach further."""
    if isinstance(of, EnumType):
        return of[name]
    raise pickle.UnpicklingError(f"a confined child answered with {name} of something")


class _PlainReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _member
        found = PLAIN.get((module, name))
        if found is None and module == "builtins":
            named = getattr(builtins, name, None)
            if isinstance(named, type) and issubclass(named, Exception):
                found = named
        if found is None:
            raise pickle.UnpicklingError(f"a confined child answered with {module}.{name}")
        return found


class Ears(WorkerManager):
    """The children, and how much of what they say was heard."""

    heard = 0
    silences = 0  # looks that found nothing: then everything before was heard
    given = 0  # calls that a child has taken

    def create_channels(self) -> None:
        super().create_channels()  # type: ignore[no-untyped-call]
        if isinstance(self.mp_context, Confined) and self.pool_channel is not None:
            self.pool_channel = _PlainChannel(
                self.pool_channel.reader, self.pool_channel.writer
            )

    def receive(self, timeout: float) -> Any:
        message = super().receive(timeout)
        if isinstance(message, NoMessage):
            self.silences += 1
        else:
            self.heard += 1
            self.given += isinstance(message, Acknowledgement)
        return message

    def inspect_workers(self) -> tuple[Any, ...]:
        """Those that have ended, however: one that left with 0 in the middle of a call is dead too."""
        ended = [each for each in dictionary_values(self.workers) if not each.is_alive()]
        for each in ended:
            self.workers.pop(each.pid, None)
        return tuple((each.pid, each.exitcode) for each in ended)


@dataclass(frozen=True, slots=True)
class Dead:
    """A child that has ended, and how much had been heard when that was seen."""

    pid: int
    code: int
    heard: int
    silences: int


class Judge(PoolManager):
    """Whose call a dead child has taken with it: that one fails, and no other."""

    worker_manager: Ears

    def __init__(self, context: Any, mp_context: Any) -> None:
        super().__init__(context, mp_context)
        self.worker_manager = Ears(context.workers, context.worker_parameters, mp_context)
        self._dead: list[Dead] = []
        self._given = 0
        self._stillborn = 0

    def update_workers(self) -> None:
        ears = self.worker_manager
        self._dead += [
            Dead(pid, code, ears.heard, ears.silences) for pid, code in ears.inspect_workers()
        ]
        judged = [each for each in self._dead if self._all_heard(each)]
        for each in judged:
            self._judge(each)
        self._dead = [each for each in self._dead if each not in judged]
        if self._stillborn >= STILLBORN and not self._busy():
            raise BrokenProcessPool("no child lives until it is given something to do")
        ears.create_workers()  # type: ignore[no-untyped-call]

    def _all_heard(self, dead: Dead) -> bool:
        ears = self.worker_manager
        # The first silence may have begun before the death was seen.
        return ears.silences >= dead.silences + 2 or ears.heard >= dead.heard + PIPE

    def _judge(self, dead: Dead) -> None:
        tasks = dictionary_values(self.task_manager.tasks)
        taken = next((each for each in tasks if each.worker_id == dead.pid), None)
        if taken is not None:
            error = ProcessExpired("its process ended", dead.code, dead.pid)  # type: ignore[no-untyped-call]
            self.task_manager.task_done(taken.id, Result(ResultStatus.ERROR, error))
            return
        # Whoever was killed at rest is missed by nobody; children that never get so far are.
        given, self._given = self._given, self.worker_manager.given
        self._stillborn = self._stillborn + 1 if given == self._given else 1

    def _busy(self) -> bool:
        return any(each.worker_id for each in dictionary_values(self.task_manager.tasks))


class Children(ProcessPool):
    """Pebble's pool, with another judge."""

    judge: type[Judge] = Judge

    def __init__(
        self, max_workers: int, *, context: Any, initializer: Any, initargs: Any
    ) -> None:
        super().__init__(
            max_workers, context=context, initializer=initializer, initargs=initargs
        )
        self._pool_manager = self.judge(self._context, context)
