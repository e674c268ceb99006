"""Find the sentence that a stored text was made from, so that a page shows it in its reader's language.

A message is stored as plain text: in columns of the documents, in views, in the answer of a service of
ours, or by a child process. Its template is in the catalogue, so the text is enough to find it again.
"""

import string
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from retoma.words import Language, Said, say, tell
from retoma.words.catalogue import catalogue

LONGEST: Final = 2_000  # characters; a longer text is shown as it is stored
LETTERS: Final = 12  # that a template must have of its own, in one of its languages
FEWEST: Final = (
    7  # in each; fewer than LETTERS in both will do where all its values are numbers
)
DEPTH: Final = 4  # sentences inside sentences
REMEMBERED: Final = 2_048  # texts


def tell_stored(text: str, language: Language | None = None) -> str:
    """Tell a stored message in this language. Words of others, and codes, stay as they are."""
    found = recall(str(text))
    return tell(found, language) if isinstance(found, Said) else found


@lru_cache(REMEMBERED)
def recall(text: str, depth: int = DEPTH) -> str:
    """The sentence a text was made from, in English or in Portuguese; else the text itself.

    A text may be in parts, `where: what`: each part is looked up by itself.
    """
    if not depth or len(text) > LONGEST:
        return text
    return _sentence(text, depth) or _parts(text, depth) or text


def _sentence(text: str, depth: int) -> Said | None:
    """A word alone is a name or a code, which is the same in every language."""
    if " " not in text:
        return None
    original = _originals().get(text)
    if original is not None:
        return say(original)
    for literal, form in _forms():
        if literal in text:
            found = form.read(text)
            if found is not None:
                return _filled(form, found, depth)
    return None


def _parts(text: str, depth: int) -> Said | None:
    """The whole of what follows a colon comes first: it may have colons of its own."""
    places = [n for n in range(len(text)) if text.startswith(": ", n)]
    for place in places:
        last = _sentence(text[place + 2 :], depth)
        if last is not None:
            return say("{head}: {tail}", head=recall(text[:place], depth - 1), tail=last)
    if text.endswith(")") and " (" in text:
        place = text.rindex(" (")
        head = _sentence(text[:place], depth)
        if head is not None:
            tail = recall(text[place + 2 : -1], depth - 1)
            return say("{head} ({tail})", head=head, tail=tail)
    for place in reversed(places):
        start = _sentence(text[:place], depth)
        if start is not None:
            return say("{head}: {tail}", head=start, tail=text[place + 2 :])
    return None


def _filled(form: "_Form", found: dict[str, str], depth: int) -> Said:
    values: dict[str, Any] = {}
    for name, value in found.items():
        inner = value
        if name in form.plain:
            noun = _originals().get(value) if name == "what" else None
            inner = recall(value, depth - 1) if noun is None else say(noun)
        values[name] = inner if isinstance(inner, Said) else _Formatted(value)
    said = Said(form.original.format(**values))
    said.template, said.values = form.original, values
    return said


class _Formatted(str):
    """A value as it stood in a text, where it was formatted already."""

    __slots__ = ()

    def __format__(self, _: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class _Form:
    """A template in one of its languages, taken apart to be recognised."""

    original: str  # the English template
    literals: tuple[str, ...]  # one more than there are names
    names: tuple[str, ...]
    plain: frozenset[str]  # names whose values stand in the text as they are
    weak: bool  # recognised only where its values are numbers

    def read(self, text: str) -> dict[str, str] | None:
        """Return the values that make this text; None where it was made from another template.

        Each value ends where the next literal first begins: the time taken is linear in the text.
        """
        first, *rest = self.literals
        if not text.startswith(first):
            return None
        found: dict[str, str] = {}
        place = len(first)
        for name, literal in zip(self.names, rest, strict=True):
            last = literal is rest[-1]
            end = len(text) - len(literal) if last else text.find(literal, place + 1)
            if end <= place or not text.startswith(literal, end):
                return None
            value = text[place:end]
            if found.setdefault(name, value) != value:
                return None
            place = end + len(literal)
        if self.weak and not all(value.isdecimal() for value in found.values()):
            return None
        return found


_Part = tuple[str, str | None, str | None, str | None]  # as a template's formatter has it


@cache
def _originals() -> dict[str, str]:
    """The English text of each text without values, in either language."""
    plain = {text: told for text, told in catalogue(Language.PT_BR).items() if "{" not in text}
    return {told: text for text, told in plain.items()} | {text: text for text in plain}


@cache
def _forms() -> list[tuple[str, _Form]]:
    """Every template that can be recognised by one of its literals, most letters first."""
    found = [
        form
        for original, told in catalogue(Language.PT_BR).items()
        for form in _pair(original, told)
    ]
    found.sort(key=lambda form: -sum(map(len, form.literals)))
    return [(max(form.literals, key=len), form) for form in found]


def _pair(original: str, told: str) -> list[_Form]:
    """A template in both its languages; none where it says too little to be recognised."""
    english, portuguese = _taken_apart(original), _taken_apart(told)
    names = [name for _, name, _, _ in english if name is not None]
    letters = [_letters(each) for each in (english, portuguese)]
    if not names or min(letters) < FEWEST or not all(name.isidentifier() for name in names):
        return []
    plain = frozenset(name for _, name, spec, how in english if name and not spec and not how)
    weak = max(letters) < LETTERS
    return [_form(original, parts, plain, weak=weak) for parts in (english, portuguese)]


def _taken_apart(template: str) -> list[_Part]:
    return list(string.Formatter().parse(template))


def _letters(parts: list[_Part]) -> int:
    return sum(each.isalpha() for literal, _, _, _ in parts for each in literal)


def _form(original: str, parts: list[_Part], plain: frozenset[str], *, weak: bool) -> _Form:
    literals, names = [""], list[str]()
    for literal, name, _, _ in parts:
        literals[-1] += literal
        if name is not None:
            names.append(name)
            literals.append("")
    return _Form(original, tuple(literals), tuple(names), plain, weak)
