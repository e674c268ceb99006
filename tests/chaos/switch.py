"""Hosts with a network each, inside one that nobody else has: `python -m tests.chaos.switch FD NAME…`.

Runs as root of a namespace of its own (`unshare --user --map-root-user --net`), so a plain user may start it.
Every host is a process that only waits, in a network and under a host name of its own, with a cable to
us. For each we hand out a socket that listens on our end of the cable: whoever gets it can
serve that host from outside. Then we pull and plug cables as we are told, until nobody listens.

Imports nothing but the library of Python: it must be quick, and the namespace may see no more.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE, THERE = "10.77.{}.1", "10.77.{}.2"


class Host:
    """One of them: its cable is `host1` at our end and `eth0` at its own."""

    def __init__(self, number: int, name: str) -> None:
        self._cable = f"host{number}"
        self._there = THERE.format(number)
        self._waits = subprocess.Popen(
            ["unshare", "--net", "--uts", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self._until_apart()
        here = HERE.format(number)
        run("ip", "link", "add", self._cable, "type", "veth", "peer", "eth0", "netns", self.pid)
        run("ip", "address", "add", f"{here}/24", "dev", self._cable)
        run("ip", "link", "set", self._cable, "up")
        inside = ("nsenter", "--target", self.pid, "--net", "--uts")
        run(*inside, "hostname", name)
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "ip", "address", "add", f"{self._there}/24", "dev", "eth0")
        run(*inside, "ip", "link", "set", "eth0", "up")
        self.listening = socket.create_server((here, 0))

    @property
    def pid(self) -> str:
        return str(self._waits.pid)

    def _until_apart(self) -> None:
        """Wait until it has its own namespaces: what is done to it must not be done to us."""
        while any(_space(self.pid, each) == _space("self", each) for each in ("net", "uts")):
            if self._waits.poll() is not None:
                raise SystemExit(f"a host ended with {self._waits.returncode}")
            os.sched_yield()

    def obey(self, order: str) -> None:
        link = ("link", "set", self._cable)
        route = ("blackhole", f"{self._there}/32")  # what is for it goes nowhere
        orders = {
            "unplug": (*link, "down"),
            "plug": (*link, "up"),
            "deafen": ("route", "add", *route),
            "hear": ("route", "delete", *route),
        }
        run("ip", *orders[order])


def _space(process: str, kind: str) -> str:
    return str(Path(f"/proc/{process}/ns/{kind}").readlink())


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


def main(descriptor: str, names: Sequence[str]) -> None:
    run("ip", "link", "set", "lo", "up")
    hosts = [Host(number, name) for number, name in enumerate(names, start=1)]
    with socket.socket(fileno=int(descriptor)) as master:
        told = json.dumps([host.pid for host in hosts]).encode()
        socket.send_fds(master, [told], [host.listening.fileno() for host in hosts])
        while order := master.recv(1024):
            number, what = json.loads(order)
            hosts[number].obey(what)
            master.send(b"done")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
