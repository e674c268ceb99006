"""Sentences of ours on a page that are not in its language."""

import re
from html import unescape

from retoma.words import Language
from retoma.words.recall import tell_stored

# Commands, codes and what others said stand on a page as they are.
OTHERS = re.compile(r"<(code|pre|q|script|style|textarea)\b[^>]*>.*?</\1>", re.DOTALL)
READ = re.compile(r'\b(?:title|alt|aria-label|placeholder)="([^"]*)"')
TAG = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)


def foreign(html: str, language: Language) -> list[str]:
    """Each text of a page that the catalogue tells otherwise in the page's language."""
    plain = OTHERS.sub("\n", html)
    lines = [*READ.findall(plain), *TAG.sub("\n", plain).splitlines()]
    texts = (" ".join(unescape(part).split()) for line in lines for part in line.split(" · "))
    return [each for each in dict.fromkeys(texts) if each != tell_stored(each, language)]
