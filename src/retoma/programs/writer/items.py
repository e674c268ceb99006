"""The items of an array in a JSON document that is never whole in memory.

Python's own decoder reads one item at a time out of what has come so far. Where it cannot, brackets
and strings are counted: an item whose end has not come yet is waited for; one that is too large, too
deep or holds what is no number is passed over as one bad item, and its neighbours are not lost.
"""

import codecs
import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, Never

MOST: Final = 1024 * 1024  # characters of one item
MANY: Final = 20  # items that are worth the trouble of reading them together
BETWEEN: Final = ", \t\n\r"
SHOWN: Final = 2_000  # characters of one that cannot be read
SPACE: Final = re.compile(r"[ \t\n\r]*")
INSIDE: Final = re.compile(r'["\\]')  # what matters within a string
OUTSIDE: Final = re.compile(r'["{}\[\]]')  # and without
LITERAL: Final = re.compile(r"[,\]}\s]")  # where a number or a word ends

Found = tuple[Any, str]  # the value of an item, or Bad; and its text


class Broken(Exception):
    """This is no JSON, or its end is missing."""


class NoArray(Exception):
    """It is JSON, and has no array under that name."""


@dataclass(frozen=True, slots=True)
class Bad:
    """In the place of a value that cannot be read: why, and how it begins."""

    why: str
    beginning: str


class _NoNumber(ValueError):
    """NaN or Infinity."""


class Items:
    """Takes pieces of a document, gives the items that are whole."""

    def __init__(self, path: str, most: int = MOST) -> None:
        self._path = path
        self._most = most
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._scan: Any = json.JSONDecoder(parse_constant=_no_number).scan_once  # type: ignore[attr-defined]  # it is there
        self._text = ""
        self._at = 0
        self._come: list[str] = []  # and not looked at yet
        self._wanted = 0  # characters before it is worth looking again
        self._found: list[Found] = []
        self._closed = False
        self._first = True  # the array has just begun
        self._between = False  # an item was read: a comma must follow, or the end
        self._large = False  # the next item is too large already
        self._story = self._document()
        self.ended = False  # the document is whole

    def feed(self, piece: bytes) -> list[Found]:
        try:
            self._come.append(self._decode(piece))
        except UnicodeDecodeError:
            raise Broken("it is not UTF-8") from None
        self._wanted -= len(self._come[-1])
        return [] if self._wanted > 0 else self._go_on()

    def end(self) -> list[Found]:
        """Nothing more will come; Broken where something should have."""
        self._closed = True
        found = self._go_on()
        if not self.ended:
            raise Broken("it is cut short")
        return found

    def _go_on(self) -> list[Found]:
        self._text = "".join((self._text[self._at :], *self._come))
        self._come.clear()
        self._at = 0
        next(self._story, None)
        if self.ended and self._text[self._at :].strip(" \t\n\r"):
            raise Broken("something follows its end")
        found, self._found = self._found, []
        return found

    # — the document, told from its beginning; a `yield` waits for more of it —

    def _document(self) -> Generator[None, None, None]:
        if (yield from self._mark()) != "{":
            raise NoArray
        mark, seen = "{", False
        while mark != "}":
            self._at += 1
            if (yield from self._mark()) == "}" and mark == "{":
                raise NoArray
            name = yield from self._name()
            if name == self._path:
                if seen:
                    raise Broken("it has the array twice")
                seen = True
                yield from self._array()
            else:
                yield from self._pass_over()
            mark = yield from self._mark()
            if mark not in ",}":
                raise Broken("a comma is missing")
        self._at += 1
        if not seen:
            raise NoArray
        self.ended = True

    def _name(self) -> Generator[None, None, str]:
        if self._text[self._at] != '"':
            raise Broken("a name is missing")
        while (after := _Passage().through(self._text, self._at)) is None:
            if len(self._text) - self._at > self._most:
                raise Broken("a name in it has no end")
            yield from self._more()
        try:
            name = self._scan(self._text, self._at)[0]
        except ValueError:
            raise Broken("a name in it cannot be read") from None
        self._at = after
        if (yield from self._mark()) != ":":
            raise Broken("a colon is missing")
        self._at += 1
        yield from self._mark()
        return str(name)

    def _array(self) -> Generator[None, None, None]:
        if self._text[self._at] != "[":
            raise NoArray
        self._at += 1
        while not self._rush():
            if not self._large:
                yield from self._more()
                continue
            beginning = self._text[self._at : self._at + SHOWN]
            passed = yield from self._pass_over()
            self._keep_bad(f"it has more than {self._most} characters", beginning, passed)

    def _pass_over(self) -> Generator[None, None, int]:
        """To the end of a value, keeping nothing of it; how many characters that were."""
        passage, passed = _Passage(), 0
        while (after := passage.through(self._text, self._at)) is None:
            rest = len(self._text) - passage.left
            passed += rest - self._at
            self._at = rest
            yield from self._more()
        passed += after - self._at
        self._at = after
        return passed

    def _mark(self) -> Generator[None, None, str]:
        """The next character that is no space; it is not passed."""
        while True:
            self._at = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches nothing too
            if self._at < len(self._text):
                return self._text[self._at]
            yield from self._more()

    def _more(self) -> Generator[None, None, None]:
        if self._closed:
            raise Broken("it is cut short")
        # As much again: what comes byte by byte is not looked at from its beginning for each.
        self._wanted = len(self._text) - self._at
        yield

    # — items: as many as are whole, without waiting —

    def _rush(self) -> bool:
        """Whether the array has ended."""
        text, size, space, scan = self._text, len(self._text), SPACE.match, self._scan
        while True:
            at = self._at = space(text, self._at).end()  # type: ignore[union-attr]  # likewise
            if at == size:
                return False
            mark = text[at]
            if self._between or mark == "]":
                if not self._punctuated(mark):
                    return True
                continue
            if mark == "{" and (self._flew(text, at) or self._sprinted(text, at)):
                continue
            try:
                value, after = scan(text, at)
            except (ValueError, RecursionError, StopIteration) as error:
                if not self._passed_unread(error):
                    return False
                continue
            if mark not in '{["' and LITERAL.search(text, after) is None:
                return False  # a number may go on: 2 is how 2.5 begins
            if after - at > self._most:
                value = Bad(f"it has more than {self._most} characters", text[at : at + SHOWN])
            self._found.append((value, text[at:after]))
            self._at, self._between, self._first = after, True, False

    def _flew(self, text: str, at: int) -> bool:
        """All whole objects at once, where none holds a brace: so their texts lie between braces.

        One pass of the decoder for many is twice as quick as one for each: it knows their names.
        """
        end = text.rfind("}") + 1
        some = text[at:end]
        count = some.count("}")
        if count < MANY or count != some.count("{"):
            return False
        try:
            values, _ = self._scan(f"[{some}]", 0)
        except (ValueError, RecursionError, StopIteration):
            return False
        texts = [f"{each.lstrip(BETWEEN)}}}" for each in some.split("}")[:-1]]
        if len(values) != count or max(map(len, texts)) > self._most:
            return False
        self._found += zip(values, texts, strict=True)
        self._at, self._between, self._first = end, True, False
        return True

    def _sprinted(self, text: str, at: int) -> bool:
        """Objects one after the other, as most programs write them; whether there was one."""
        scan, keep, start, after = self._scan, self._found.append, at, at
        try:
            while True:
                value, after = scan(text, at)
                if after - at > self._most:
                    break
                keep((value, text[at:after]))
                if text.startswith(", {", after):
                    at = after + 2
                elif text.startswith(",{", after):
                    at = after + 1
                else:
                    self._at, self._between, self._first = after, True, False
                    return True
        except (ValueError, RecursionError, StopIteration):
            pass  # looked at again where there is time for it
        self._at = at
        self._first = self._first and at == start
        return at > start

    def _punctuated(self, mark: str) -> bool:
        """Past a comma; False: that was the end."""
        self._at += 1
        if mark == "]" and (self._between or self._first):
            return False
        if mark != ",":
            raise Broken(f"item {'ends' if self._between else 'begins'} in no way JSON knows")
        self._between = False
        return True

    def _passed_unread(self, error: Exception) -> bool:
        """Whether the item was whole, and is passed; else its end has to come."""
        after = _Passage().through(self._text, self._at)
        if after is None:
            self._large = len(self._text) - self._at > self._most
            return False
        if isinstance(error, json.JSONDecodeError | StopIteration):
            raise Broken("an item in it is no JSON") from None
        beginning = self._text[self._at : min(after, self._at + SHOWN)]
        passed, self._at = after - self._at, after
        self._keep_bad(_why(error), beginning, passed)
        return True

    def _keep_bad(self, why: str, beginning: str, passed: int) -> None:
        self._found.append((Bad(why, beginning), f"{passed} {beginning}"))
        self._between, self._first, self._large = True, False, False


class _Passage:
    """The way through one value, which may come in pieces."""

    __slots__ = ("_begun", "_depth", "_in_string", "_literal", "left")

    def __init__(self) -> None:
        self._begun = self._in_string = self._literal = False
        self._depth = 0
        self.left = 0  # characters at the end that must be seen again

    def through(self, text: str, at: int) -> int | None:
        """The place after it; None: it goes on in what has not come yet."""
        self.left = 0
        if not self._begun:
            at = self._begin(text, at)
        if self._literal:
            end = LITERAL.search(text, at)
            return None if end is None else end.start()
        while self._in_string or self._depth:
            found = (INSIDE if self._in_string else OUTSIDE).search(text, at)
            if found is None:
                return None
            at = found.end()
            if found[0] == "\\":
                at += 1
                if at > len(text):
                    self.left = 1
                    return None
            else:
                self._meet(found[0])
        return at

    def _begin(self, text: str, at: int) -> int:
        self._begun = True
        self._literal = text[at] not in '"{['
        if self._literal:
            return at
        self._meet(text[at])
        return at + 1

    def _meet(self, mark: str) -> None:
        if mark == '"':
            self._in_string = not self._in_string
        else:
            self._depth += 1 if mark in "{[" else -1


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, _NoNumber):
        return "NaN and Infinity are no numbers of JSON"
    return "a number in it is too large"


def _no_number(_: str) -> Never:
    raise _NoNumber
