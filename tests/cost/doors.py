"""The modules that hold families. Add one here, and it is measured and stands in the table."""

import importlib
from typing import Final

from tests.cost.family import Family

MODULES: Final = ("tests.cost.web", "tests.cost.texts", "tests.cost.readers")


def families_of(module: str) -> list[Family]:
    found: list[Family] = importlib.import_module(module).FAMILIES
    return found
