"""Machines for a test: each with a network and a host name of its own where this one allows that, else
processes that say they are on different machines. Before each stands a proxy on the way to PostgreSQL.
"""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests import services
from tests.chaos.world import Process, World
from tests.proxy import Proxy

ROOT = Path(__file__).parent.parent.parent
START = 300.0  # seconds; a program that cannot start says so long before
BEAT = 1.0  # seconds: a host that hears nobody finds out by its beat
ANSWER = 2.0  # seconds: the way is short, so whoever waits longer waits for nothing
WAYS = (
    ("unshare", "--user", "--map-root-user", "--net"),  # also as a plain user
    ("unshare", "--net"),  # as root, where users have no namespaces
)


@dataclass(slots=True, eq=False)
class Host:
    """One machine. Its runners are started with it and reach the database through its proxy."""

    name: str
    proxy: Proxy
    switch: "Switch | None" = None
    number: int = 0

    @property
    def url(self) -> str:
        return f"{self.proxy.url}?answer={ANSWER}"

    def start(self, world: World, **knobs: Any) -> Process:
        return self.start_program(world, "tests.chaos.run_runner", **knobs)

    def start_program(self, world: World, module: str, **knobs: Any) -> Process:
        told = {"name": self.name, "tick": 1.0, "beat": BEAT, **knobs}
        if self.switch is None:
            told["host"] = self.name
        inside = None if self.switch is None else self.switch.pids[self.number]
        return world.start(self.name, module, told, {"RETOMA_DATABASE_URL": self.url}, inside)

    # — partitions —

    def cut_off(self) -> None:
        """Packets vanish, both ways. Nobody is told."""
        if self.switch is None:
            self.proxy.silence()
        else:
            self.switch.order(self.number, "unplug")

    def hang_up(self) -> None:
        """Every connection is reset, and every new one."""
        self.proxy.refuse()
        self.proxy.cut()

    def deafen(self) -> None:
        """What it says arrives; what is answered does not."""
        if self.switch is None:
            self.proxy.silence(requests=False)
        else:
            self.switch.order(self.number, "deafen")

    def reach_again(self, after: str) -> None:
        """Undo one of the above."""
        self.proxy.refuse(False)
        if self.switch is None:
            self.proxy.speak()
        elif after in ("cut_off", "deafen"):
            self.switch.order(self.number, "plug" if after == "cut_off" else "hear")


class Hosts:
    """with Hosts(4, url) as hosts: …  Says how it made them."""

    def __init__(self, n: int, url: str, *, networks: bool = True) -> None:
        self._names = [f"host-{number}" for number in range(1, n + 1)]
        self._url = url
        self._networks = networks
        self._stack = ExitStack()
        self.how = ""

    def __enter__(self) -> list[Host]:
        switch, self.how = switched(self._names) if self._networks else (None, "as asked")
        if switch is not None:
            self._stack.enter_context(switch)
        kind = "processes" if switch is None else "network namespaces"
        print(f"{len(self._names)} hosts are {kind}: {self.how}")  # -s and failures show it
        with ExitStack() as made:
            hosts = [self._host(number, switch, made) for number in range(len(self._names))]
            self._stack.enter_context(made.pop_all())
        return hosts

    def _host(self, number: int, switch: "Switch | None", stack: ExitStack) -> Host:
        listening = None if switch is None else switch.listening[number]
        proxy = stack.enter_context(Proxy(self._url, listening))
        return Host(self._names[number], proxy, switch, number)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()


class Switch:
    """The program that holds the cables, and the sockets it gave us."""

    def __init__(
        self,
        popen: "subprocess.Popen[bytes]",
        wire: socket.socket,
        pids: list[str],
        listening: list[socket.socket],
    ) -> None:
        self._popen = popen
        self._wire = wire
        self.pids = pids  # of processes in the namespaces of each host
        self.listening = listening

    def order(self, number: int, what: str) -> None:
        self._wire.send(json.dumps([number, what]).encode())
        assert self._wire.recv(16) == b"done", f"the switch did not {what}"

    def __enter__(self) -> "Switch":
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()  # it ends, and with it the hosts
        self._popen.wait(START)
        for each in self.listening:
            each.close()


def switched(names: list[str]) -> tuple[Switch | None, str]:
    """A switch and how it was made; None and why not, where this machine lets nobody."""
    for way in WAYS:
        switch, why = _started(way, names)
        if switch is not None:
            return switch, " ".join(way)
    return None, why


def _started(way: tuple[str, ...], names: list[str]) -> tuple[Switch | None, str]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            popen = subprocess.Popen(
                [
                    *way,
                    sys.executable,
                    "-m",
                    "tests.chaos.switch",
                    str(theirs.fileno()),
                    *names,
                ],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=services.die_with_parent(),  # noqa: PLW1509  # one C call, no lock
            )
        except OSError as error:
            ours.close()
            return None, str(error)
    ours.settimeout(START)
    told, descriptors, _, _ = socket.recv_fds(ours, 4096, len(names))
    assert popen.stderr is not None
    if not told:
        ours.close()
        _, said = popen.communicate()
        why = said.decode(errors="replace").strip().splitlines()
        return None, why[-1] if why else f"{way[0]} ended with {popen.returncode}"
    popen.stderr.close()
    listening = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    return Switch(popen, ours, json.loads(told), listening), ""
