"""What the children of the tests are told to do: in a module that costs them little to import."""

import ctypes
import os
import re
import threading
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from retoma.engine.rules.errors import Permanent


@dataclass(frozen=True)
class Page:
    """A value with a shape."""

    number: int
    words: tuple[str, ...] = ()


def read(page: Page, times: int = 1) -> Page:
    assert isinstance(page, Page)
    return Page(page.number * times, (*page.words, "read"))


def crash(_: int) -> None:
    ctypes.string_at(0)


def hang(_: int) -> None:
    threading.Event().wait(60)


def leave(_: int) -> None:
    os._exit(7)


def refuse(n: int) -> None:
    raise Permanent(f"page {n} is encrypted", code="ENCRYPTED")


def misunderstood(n: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821
    return int(n) + 1


class Stubborn(Exception):
    """Cannot be rebuilt from its message alone."""

    def __init__(self, page: int, line: int) -> None:
        super().__init__(f"page {page}, line {line}")


def raise_stubborn(n: int) -> None:
    raise Stubborn(n, 3)


def unstorable(_: int) -> Any:
    return {1, 2}


def write_down_and_hang(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(str(os.getpid()))
    threading.Event().wait(60)


def double(n: int) -> int:
    return 2 * n


def write_and_wait(gate: str) -> int:
    with Path(f"{gate}.log").open("a") as log:
        log.write("begun\n")
    while not Path(gate).exists():
        threading.Event().wait(0.01)
    return 1


def leave_silently(_: int) -> None:
    os._exit(0)


def read_twice(page: Page) -> Page:
    return read(page, 2)


MEGABYTE = 10**6


def eat(megabytes: int) -> int:
    kept = [bytearray(MEGABYTE) for _ in range(megabytes)]
    return len(kept)


def spin(_: int) -> None:
    while True:
        pass


def pause_for(seconds: float) -> str:
    threading.Event().wait(seconds)
    return "rested"


def hold_the_interpreter(_: int) -> None:
    re.match(r"(a+)+$", "a" * 40 + "b")


def who(_: int) -> int:
    return os.getpid()


@dataclass(frozen=True)
class Bill:
    """Money, a moment and bytes."""

    price: Decimal
    at: datetime
    scan: bytes


def add_tax(bill: Bill, rate: Decimal) -> Bill:
    return replace(bill, price=bill.price * (1 + rate))


def due_next(*days: date) -> date:
    return max(days)
