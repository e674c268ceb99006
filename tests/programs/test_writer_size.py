"""A million ads through the writer: its memory stays what it was (§9.2 of seed 004, whatever the size)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx2
import pytest

from tests.outbound.fakes import serving
from tests.programs.processes import API_KEY, PATIENCE, Program, programs
from tests.programs.writers import ad, add_profile, asked, desk_at, with_table

MANY = 1_000_000
PIECE = 2_000  # ads
MEGABYTES = 200


async def many_ads(count: int) -> AsyncIterator[bytes]:
    yield b'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{"ads": ['
    for start in range(0, count, PIECE):
        some = ",".join(json.dumps(ad(n)) for n in range(start, min(start + PIECE, count)))
        yield (f",{some}" if start else some).encode()
    yield b"]}"


def peak(program: Program) -> float:
    """The most memory it ever had, in megabytes."""
    assert program.child is not None
    text = Path(f"/proc/{program.child.pid}/status").read_text()
    [line] = [each for each in text.splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


async def written(program: Program, url: str) -> dict[str, Any]:
    headers = {"x-api-key": API_KEY}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http:
        await http.post(f"{program.origin}/process", json={"job_id": "all", **asked(url)})
        while True:
            told = (await http.get(f"{program.origin}/status/all")).json()
            if told["status"] != "processing":
                return dict(told)
            await asyncio.sleep(0.2)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_million_ads_need_no_more_memory_than_a_few(database_url, tmp_path):
    target = await with_table(database_url)
    target.close()
    desk = desk_at(tmp_path)
    with programs(tmp_path) as those:
        async with serving(lambda _: many_ads(MANY)) as source:
            async with desk.retoma:
                await desk.ready()
                await add_profile(desk, database_url, source.url)
                await desk.close()
            program = await asyncio.to_thread(
                those.start,
                *("writer-service", "--database", desk.retoma.url),
                RETOMA_SECRET_KEY_FILE=str(tmp_path / "writer.key"),
            )
            began, before = perf_counter(), peak(program)
            told = await written(program, source.url + "/data.json")
            took, after = perf_counter() - began, peak(program)

    print(f"{MANY / took:.0f} ads/s, {before:.0f} MB before, {after:.0f} MB at most")
    assert ("completed", MANY) == (told["status"], told["progress"]["success_count"])
    assert after <= MEGABYTES
