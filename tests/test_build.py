"""Whatever command builds a wheel, its pages move; without what they load none is built."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.bare_machine import link_programs
from tests.house.files import ROOT, kept_files
from tests.web import screens
from tests.web.chromium import browser, context
from tests.web.living import living

OF_THE_DEMO = ("ads", "documents", "embeddings", "matches", "quotes")
VENDOR = "retoma/web/pages/static/vendor"
ASSETS = {
    f"{VENDOR}/{name}"
    for name in ("htmx.min.js", "hx-sse.min.js", "uPlot.iife.min.js", "uPlot.min.css")
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return copy_tree(tmp_path / "clone")


def copy_tree(folder: Path) -> Path:
    """Copy what is under version control, as a clean clone has it: without the assets."""
    for path in kept_files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    assert not (folder / "src" / VENDOR).exists()
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel from a clean clone, by npm or by the wheel of node that this environment has."""
    folder = tmp_path_factory.mktemp("wheel")
    built = build(copy_tree(folder / "clone"), "wheel")
    built.check_returncode()
    return only(folder / "clone" / "dist", "*.whl")


def test_a_wheel_from_a_clean_clone_carries_what_the_pages_load(wheel):
    assert set(zipfile.ZipFile(wheel).namelist()) >= ASSETS


def test_without_a_registry_no_wheel_is_built_and_the_build_says_so(clone, unreachable):
    done = build(clone, "wheel", unreachable)

    assert 0 != done.returncode
    assert "npm could not install what the pages of retoma load" in done.stderr
    assert [] == list(clone.glob("dist/*"))


def test_a_package_that_is_not_the_one_in_the_lock_stops_the_build(clone):
    lock = clone / "package-lock.json"
    parts = json.loads(lock.read_text())
    parts["packages"]["node_modules/uplot"]["integrity"] = "sha512-" + "A" * 86 + "=="
    lock.write_text(json.dumps(parts))

    done = build(clone, "wheel")

    assert 0 != done.returncode
    assert "EINTEGRITY" in done.stderr
    assert [] == list(clone.glob("dist/*"))


def test_an_editable_install_fetches_nothing(clone, unreachable):
    done = build(clone, "wheel:editable", unreachable)

    assert 0 == done.returncode, done.stderr
    assert not (clone / "src" / VENDOR).exists()


def test_a_wheel_from_a_source_distribution_needs_no_registry(clone, tmp_path, unreachable):
    build(clone, "sdist").check_returncode()
    packed = only(clone / "dist", "*.tar.gz")
    run(["tar", "-xzf", packed, "-C", tmp_path], clone).check_returncode()
    source = only(tmp_path, "retoma-*")

    done = build(source, "wheel", unreachable)

    assert 0 == done.returncode, done.stderr
    assert set(zipfile.ZipFile(only(source / "dist", "*.whl")).namelist()) >= ASSETS


def test_an_asset_that_was_changed_is_fetched_again(clone, unreachable):
    build(clone, "wheel").check_returncode()
    (clone / "src" / VENDOR / "uPlot.min.css").write_text("cut off")

    assert 0 != build(clone, "wheel", unreachable).returncode
    assert 0 == build(clone, "wheel").returncode
    assert "cut off" != (clone / "src" / VENDOR / "uPlot.min.css").read_text()


# --- every way of building, in an empty environment

Install = Callable[["Machine", Path], None]


class Machine:
    """An empty home and environment, and a PATH without npm, node or uv."""

    def __init__(self, folder: Path) -> None:
        (folder / "home").mkdir()
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        self.environment = {"PATH": str(link_programs(folder / "bin"))} | {
            name: str(folder / "home") for name in ("HOME", "TMPDIR")
        }
        self.run("python3", "-m", "venv", folder / "venv")

    def run(self, *command: "str | Path", cwd: Path | None = None) -> None:
        done = run(list(command), cwd or self.folder, self.environment)
        assert 0 == done.returncode, done.stdout + done.stderr

    def pip(self, *words: "str | Path", cwd: Path | None = None) -> None:
        pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
        self.run(self.python, *pip, *words, cwd=cwd)


def pip_wheel(machine: Machine, clone: Path) -> None:
    machine.pip("wheel", "--no-deps", "--wheel-dir", "dist", ".", cwd=clone)
    machine.pip("install", only(clone / "dist", "*.whl"))


def pip_install_here(machine: Machine, clone: Path) -> None:
    machine.pip("install", ".", cwd=clone)


def pip_install_folder(machine: Machine, clone: Path) -> None:
    machine.pip("install", clone)


def uv_build(machine: Machine, clone: Path) -> None:
    machine.run("python3", "-m", "venv", machine.folder / "uv")
    lock = ROOT / "requirements" / "uv.txt"
    pip = (machine.folder / "uv/bin/pip", "install", "--quiet", "--require-hashes")
    machine.run(*pip, "-r", lock)
    machine.run(machine.folder / "uv/bin/uv", "build", cwd=clone)
    machine.pip("install", only(clone / "dist", "*.whl"))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("install", [pip_wheel, pip_install_here, pip_install_folder, uv_build])
def test_the_pages_of_a_wheel_move(tmp_path, clone, install: Install):
    machine = Machine(tmp_path)
    install(machine, clone)
    world = tmp_path / "world"
    world.mkdir()

    with (
        living(world, str(machine.python), machine.environment) as link,
        browser() as started,
        context(started) as someone,
    ):
        page = someone.new_page()
        screens.enter(page, link)
        moves_by_itself(page)


def moves_by_itself(page: Page) -> None:
    """Its numbers change while it stays loaded, and its chart is drawn."""
    expect(page.locator("#signal")).to_have_attribute("data-is", "on")
    expect(page.locator("#pace canvas")).to_be_visible()
    page.evaluate("window.same = true")
    tiles = page.locator("#board-tiles")
    expect(tiles).not_to_have_text(tiles.inner_text(), timeout=90_000)
    assert page.evaluate("window.same") is True, "the page was loaded again"


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("extra", ["", "[anthropic]"])
def test_the_wheel_in_an_empty_environment_plays_the_demo(wheel, tmp_path, extra):
    machine = Machine(tmp_path)
    machine.pip("install", f"{wheel}{extra}")

    done = run([tmp_path / "venv/bin/retoma", "demo", "--fast", "--json"], tmp_path)

    assert 0 == done.returncode, done.stderr
    told = json.loads(done.stdout)
    assert told["ok"]
    assert {*OF_THE_DEMO[: None if extra else -1]} == {*told["applications"]}


# --- how commands are run


@pytest.fixture
def unreachable(tmp_path: Path) -> dict[str, str]:
    """Settings of an npm that may not use the network, and has stored nothing."""
    return {"NPM_CONFIG_OFFLINE": "true", "NPM_CONFIG_CACHE": str(tmp_path / "npm-cache")}


def build(
    tree: Path, target: str, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", "dist"]
    return run(command, tree, environment)


def run(
    words: "list[str] | list[str | Path]",
    folder: Path,
    environment: dict[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        words,
        cwd=folder,
        env={**bare, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found
