"""A child that reads a stranger's file learns nothing, reaches nobody and costs no more than it may."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retoma import Permanent, Retoma, Transient
from retoma.codec import decode
from retoma.engine.handlers.context import Context
from retoma.engine.isolation.confine import MACHINES, find_gaps
from retoma.engine.isolation.isolate import AHEAD, CHILDREN, ChildDied, Isolate, Limits
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.states import State
from retoma.engine.testing import drain
from tests.engine import strangers
from tests.engine.calls import MEGABYTE, crash, double, eat
from tests.house.files import ROOT

KEY = "CANARY-key-of-the-parent"
IS_KNOWN = os.uname().machine in MACHINES
LINUX = pytest.mark.skipif(not IS_KNOWN, reason="a processor whose calls we do not know")


@pytest.fixture(scope="module")
def shared() -> Iterator[Isolate]:
    isolate = Isolate()
    yield isolate
    isolate.close()


@pytest.fixture
def isolate(shared: Isolate) -> Isolate:
    shared._room = asyncio.Semaphore(CHILDREN + AHEAD)
    return shared


@pytest.fixture(scope="module")
def gaps() -> list[str]:
    """What this kernel does not close."""
    isolate = Isolate()
    try:
        answer = asyncio.run(isolate.in_child(find_gaps, (), confined=True))
    finally:
        isolate.close()
    found: list[str] = decode(answer, list[str])
    return found


async def test_it_has_no_key_no_argument_and_no_descriptor_of_its_parent(tmp_path, monkeypatch):
    monkeypatch.setenv("RETOMA_SECRET_KEY", KEY)
    monkeypatch.setattr(sys, "argv", ["retoma", f"--database=postgresql://me:{KEY}@here/x"])
    with (tmp_path / "open").open("w") as file, socket.socket() as listening:
        os.set_inheritable(file.fileno(), True)
        listening.set_inheritable(True)
        isolate = Isolate()
        try:
            known = await isolate.in_child(strangers.environment, (), confined=True)
            arguments = await isolate.in_child(strangers.arguments, (), confined=True)
            there = await isolate.in_child(strangers.descriptors, (), confined=True)
        finally:
            isolate.close()

    assert {"LC_CTYPE"} >= decode(known).keys() - {"LD_LIBRARY_PATH", "PYTHONHOME"}
    assert KEY not in known + arguments
    standard, others = decode(there)[:3], decode(there)[3:]
    assert ["/dev/null"] * 3 == standard
    ours = ("pipe:", "/dev/null", "/proc/")  # of the pool; of what looks
    assert [] == [
        each for each in others if not each.startswith(ours) and "/notes-" not in each
    ]


async def test_it_reaches_neither_the_network_nor_others_processes_and_starts_none(
    isolate, gaps
):
    """Each in itself; what this kernel lacks is in `gaps`, and said by the doctor: see below."""
    reached = decode(await isolate.in_child(strangers.reach, (os.getpid(),), confined=True))

    assert "environment" not in gaps
    if "network" not in gaps:
        assert {"PermissionError"} == {reached["socket"], reached["pair"]}
    if "processes" not in gaps:
        assert {"PermissionError"} == {reached["kill"], reached["environ"]}
    if "programs" not in gaps:
        assert {"PermissionError"} == {reached["fork"], reached["program"]}


@LINUX
async def test_it_reads_code_and_what_it_is_given_and_writes_nothing(isolate, gaps, tmp_path):
    secret = tmp_path / "keys"
    secret.write_text(KEY)
    if "files" in gaps:
        pytest.skip("this kernel has no Landlock")

    async def asked(fn: Any, path: str) -> str:
        return str(decode(await isolate.in_child(fn, (path,), confined=True), str))

    assert "EACCES" == await asked(strangers.read_text, str(secret))
    assert "EACCES" == await asked(strangers.read_text, f"/proc/{os.getpid()}/environ")
    assert "EACCES" == await asked(strangers.read_text, str(ROOT / "pyproject.toml"))
    assert "EACCES" == await asked(strangers.write_text, str(tmp_path / "made"))
    assert "EACCES" == await asked(strangers.write_text, strangers.__file__)
    assert 3 == await isolate.read(strangers.size_of, b"abc")
    assert 1 == decode(await isolate.in_child(strangers.threads, (), confined=True))


async def test_it_takes_no_more_memory_than_it_may_and_cannot_change_that(isolate):
    limits = Limits(memory=200 * MEGABYTE)
    with pytest.raises(ChildDied) as died:
        await isolate.in_child(eat, (400 * MEGABYTE,), confined=True, limits=limits)
    assert "out_of_memory" == died.value.code
    with pytest.raises(ChildDied):  # without a word of its own it has a limit too
        await isolate.in_child(eat, (900 * MEGABYTE,), confined=True)
    with pytest.raises((ChildDied, RuntimeError)):
        await isolate.in_child(strangers.eat_shared, (20_000 * MEGABYTE,), confined=True)
    raised = await isolate.in_child(strangers.raise_limits, (), confined=True)
    assert decode(raised, str) in ("ValueError", "PermissionError")


async def test_what_it_raises_comes_home_as_an_error_of_ours(isolate):
    with pytest.raises(Permanent, match="page 3 is encrypted") as refused:
        await isolate.in_child(strangers.refuse_by_code, (3,), confined=True)
    assert "encrypted" == refused.value.code
    with pytest.raises(Transient, match="later") as busy:
        await isolate.in_child(strangers.fail_for_now, (), confined=True)
    assert "busy" == busy.value.code
    with pytest.raises(RuntimeError, match="OfMyOwn: what I say"):
        await isolate.in_child(strangers.fail_in_my_own_way, (), confined=True)
    with pytest.raises(ChildDied, match="SIGSEGV"):
        await isolate.in_child(crash, (1,), confined=True)
    assert "4" == await isolate.in_child(double, (2,), confined=True)


async def test_what_it_answers_runs_no_code_here(tmp_path):
    """It may write anything into its pipe: its pool is given up, and the next call gets another."""
    isolate, made = Isolate(), tmp_path / "made"
    try:
        with pytest.raises(Transient):
            await isolate.in_child(strangers.send_code, (str(made),), confined=True)
        assert "4" == await isolate.in_child(double, (2,), confined=True)
    finally:
        isolate.close()
    assert not made.exists()


async def test_a_step_may_ask_for_it_and_an_async_one_may_not(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def look(ctx: Context) -> Any:
            gaps = await ctx.step("gaps", find_gaps, where="confined", timeout=60)
            size = await ctx.read_apart(strangers.size_of, b"bytes of a stranger")
            return [gaps, size]

        @app.job
        async def wrong(ctx: Context) -> Any:
            async def here() -> None: ...

            try:
                await ctx.step("here", here, where="confined")
            except BadInput as error:
                return str(error)

        done, refused = await app.submit(look), await app.submit(wrong)
        await drain(app)

        looked, said = await app.get(done.id), await app.get(refused.id)
        assert State.DONE == looked.state
        found, size = json.loads(looked.result or "")
        assert "environment" not in found
        assert 19 == size
        assert "is async" in (said.result or "")


# — where the kernel, or a container, allows less —


def doctor(url: str, lacks: str) -> dict[str, Any]:
    """What the doctor says of children, in a process without some rights."""
    program = f"""
import sys
from tests.engine import strangers
strangers.{lacks}()
from retoma.cli import main
sys.argv = ["retoma", "doctor", "--json", "--database", {url!r}]
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    checks = json.loads(ended.stdout)["checks"]
    found: dict[str, Any] = next(each for each in checks if each["check"] == "children")
    return found


@LINUX
async def test_where_it_cannot_be_confined_the_doctor_says_so_and_it_works_all_the_same(
    tmp_path,
):
    url = f"sqlite:///{Path(tmp_path) / 'work.db'}"
    async with Retoma(url) as app:
        await app.upgrade()

    told = doctor(url, "without_confinement")

    assert "warn" == told["verdict"]
    for each in ("network", "files", "processes", "programs"):
        assert each in told["found"]
    assert "environment" not in told["found"]
    assert "Landlock" in told["todo"]


@LINUX
async def test_a_plain_user_is_confined_as_root_is(tmp_path, gaps):
    url = f"sqlite:///{Path(tmp_path) / 'work.db'}"
    async with Retoma(url) as app:
        await app.upgrade()

    told = doctor(url, "without_capabilities")

    assert ("warn" if gaps else "ok") == told["verdict"]
