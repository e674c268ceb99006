"""Walk one request, one run and one page through the code: how many functions in how many files each passes.

python -m tests.house.walk             # the numbers
python -m tests.house.walk --list      # every function, file by file
"""

import asyncio
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from retoma.apps.quotes import APP
from tests.apps.people import people
from tests.apps.quotes.aids import world
from tests.house.files import SOURCE

QUOTE = {"descricao": "Notebook Dell Inspiron 15"}


class Walk:
    """The functions of ours that were called while it watched."""

    def __init__(self) -> None:
        self._codes: set[CodeType] = set()

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._codes.add(frame.f_code)

    @contextmanager
    def watch(self) -> Iterator[None]:
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def by_file(self) -> dict[str, list[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for code in self._codes:
            path = Path(code.co_filename)
            if path.is_relative_to(SOURCE) and not code.co_name.startswith("<"):
                found[path.relative_to(SOURCE).as_posix()].add(code.co_qualname)
        return {file: sorted(names) for file, names in sorted(found.items())}


async def walk(folder: Path) -> dict[str, Walk]:
    """Do each of the three a second time: the first one imports, opens and compiles."""
    walks = {name: Walk() for name in ("a POST", "a run", "a page")}
    url = f"sqlite:///{folder / 'work.db'}"
    async with world(url, folder) as there, people(there.app, APP, url) as who:
        for count in range(2):
            watched = [each.watch() if count else Walk().watch() for each in walks.values()]
            with watched[0]:
                answer = await who["operator"].post("/api/quotes", json=QUOTE)
            assert 201 == answer.status_code, answer.text
            with watched[1]:
                await there.drained()
            with watched[2]:
                page = await who["viewer"].get("/quotes")
            assert 200 == page.status_code, page.text
    return walks


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        walks = asyncio.run(walk(Path(folder)))
    for name, each in walks.items():
        files = each.by_file()
        print(f"{name}: {sum(map(len, files.values()))} functions in {len(files)} files")
        if "--list" in sys.argv:
            for file, functions in files.items():
                print(f"  {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
