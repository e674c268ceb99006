"""Tell names apart that look alike: a person must not hide behind the name of another. Pure: no I/O."""

import unicodedata
from typing import Final

from retoma.text import normalize

# Scripts whose letters look like Latin ones. A name is written in one of them, or in Latin.
LIKE_LATIN: Final = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC"})
# Letters and digits by the small Latin letter they look like.
TWINS: Final = {
    **str.maketrans("аеорсухіјѕԁɡһӏкмнтвьԛԝ", "aeopcyxijsdghikmhtbbqw"),
    **str.maketrans("αορντυικεηχρωγ", "aopvtuikenxpwy"),
    **str.maketrans("օսոցհ", "oungh"),  # noqa: RUF001 — Armenian
    **str.maketrans("01|!ıłl", "oiiiiii"),  # noqa: RUF001 — and Latin itself
}


def is_mixed(name: str) -> bool:
    """Whether its letters are of two scripts that look alike, or have a plainer spelling."""
    if normalize("NFKC", name) != name:
        return True
    scripts = {unicodedata.name(each, "?").split(" ")[0] for each in name if each.isalpha()}
    return len(scripts & LIKE_LATIN) > 1


def skeleton(name: str) -> str:
    """What is left where only the looks count: equal for names that people would take for one another."""
    return normalize("NFKC", name.casefold().translate(TWINS)).casefold()
