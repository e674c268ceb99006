"""Both commands of the README work where nothing is there by luck."""

import os
from collections.abc import Iterator

import pytest

from tests.bare_machine import BareMachine, bare_machine
from tests.house.files import ROOT

USERS = [False, True] if os.geteuid() == 0 else [False]  # only root can be root there
SAMPLE = (
    *("tests/test_services.py", "tests/test_fallbacks.py", "tests/web/test_silence.py"),
    *("tests/db/test_database.py", "tests/dispatch", "tests/apps/quotes/test_pictures.py"),
)


@pytest.fixture(params=USERS, ids=["as_root" if root else "as_a_plain_user" for root in USERS])
def machine(request: pytest.FixtureRequest) -> Iterator[BareMachine]:
    with bare_machine(as_root=request.param) as made:
        yield made


def test_nothing_is_there_by_luck(machine):
    seen = machine.run("sh", "-c", LOOK, capture=True)

    home = f"{machine.folder}/home"
    assert f"{machine.user} {home}" == seen.stdout.strip()
    assert machine.clone.joinpath("run").is_file()
    assert not machine.clone.joinpath(".venv").exists()


# Every line that prints is something that nobody has brought.
LOOK = """
for program in node npm uv pip postgres redis-server valkey-server chromium apt-get gcc; do
    command -v $program
done
if grep -q '^retoma-bare /usr/lib/postgresql ' /proc/mounts; then ls -A /usr/lib/postgresql /tmp /home; fi |
    grep -v ':$' | grep .
ls -A "$HOME"
echo "$(id -u) $HOME"
"""


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_the_demo_and_the_tests_bring_all_they_need(machine):
    demo = machine.run("./run", "demo", "--fast", capture=True)
    assert 0 == demo.returncode, demo.stdout[-3000:] + demo.stderr[-3000:]

    tests = machine.run("./run", "test", *SAMPLE, capture=True)
    assert 0 == tests.returncode, tests.stdout[-6000:] + tests.stderr[-3000:]
    print(tests.stdout[-500:], tests.stderr)


def test_the_sample_is_of_tests_that_there_are():
    assert all((ROOT / name).exists() for name in SAMPLE)
