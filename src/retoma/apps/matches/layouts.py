"""Which layouts there are to choose from, by their names: none is loaded for it."""

from importlib.metadata import entry_points
from itertools import permutations
from typing import Final

GROUP: Final = "retoma.matches.layouts"  # of entry points: the name is the layout's
OURS: Final = ("classic", "modern")
EACH_SITE: Final = "site"  # every site by the layouts it names itself


def layout_choices() -> tuple[str, ...]:
    """What the setting may be: each site's own, or one or two layouts, the newest first."""
    names = sorted({*OURS, *(each.name for each in entry_points(group=GROUP))})
    return (EACH_SITE, *names, *(",".join(each) for each in permutations(names, 2)))
