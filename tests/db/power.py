"""A program on a disk that forgets: what was not synced is gone when its power is cut.

    python -m tests.db.power sqlite:////folder/work.db

SQLite's files are kept in memory and reach the real ones only by a sync. The program submits
jobs, runs them, says what it was told, and ends without another word to the disk.
"""

# ruff: noqa: N802 — SQLite's names

import asyncio
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

import apsw

from retoma import Context, Retoma, State

DISKS: dict[str, "Disk"] = {}


@dataclass
class Disk:
    """One file: as everybody sees it, and what of it would be lost."""

    image: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)


class ForgetfulFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        path = name if isinstance(name, str) else name.filename()
        if path not in DISKS:
            DISKS[path] = Disk(bytearray(super().xRead(super().xFileSize(), 0)))
        self.disk = DISKS[path]

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self.disk.image[offset : offset + amount])

    def xWrite(self, data: Any, offset: int) -> None:
        image = self.disk.image
        image.extend(bytes(max(offset - len(image), 0)))
        image[offset : offset + len(data)] = data
        self.disk.unsynced.append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        del self.disk.image[size:]
        self.disk.unsynced.append((size, None))

    def xFileSize(self) -> int:
        return len(self.disk.image)

    def xSync(self, flags: int) -> None:
        for offset, data in self.disk.unsynced:
            if data is None:
                super().xTruncate(offset)
            else:
                super().xWrite(data, offset)
        self.disk.unsynced.clear()
        super().xSync(flags)


class ForgetfulDisk(apsw.VFS):
    def __init__(self) -> None:
        super().__init__("forgetful", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> ForgetfulFile:
        return ForgetfulFile(name, flags)


async def double(n: int) -> int:
    return n * 2


async def main(url: str) -> None:
    app = Retoma(url)

    @app.job
    async def work(ctx: Context, n: int) -> int:
        return await ctx.step("double", double, n)

    submitted = [(await app.submit(work, n)).id for n in range(10)]
    await app.run(until_idle=True)
    waiting = [(await app.submit(work, n)).id for n in range(10, 15)]
    done = [job.id for job in await app.jobs(state=State.DONE)]
    print(json.dumps({"submitted": submitted, "waiting": waiting, "done": done}), flush=True)
    os._exit(0)  # the power is cut: nobody closes anything


if __name__ == "__main__":
    disk = ForgetfulDisk()
    asyncio.run(main(sys.argv[1]))
