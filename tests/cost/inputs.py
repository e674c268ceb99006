"""Bytes that make readers work hard: generators that any door may use, each of about so many bytes."""

from collections.abc import Callable, Mapping
from random import Random

LONG_KEY = b"k" * 100


def nested(inside: bytes) -> bytes:
    """Below thirty objects with long names: what is written per value costs thirty names each."""
    return b"".join(b'{"%s":' % LONG_KEY for _ in range(30)) + inside + b"}" * 30


def items(one: bytes, n: int) -> bytes:
    return b"[" + b",".join([one] * max(n // (len(one) + 1), 1)) + b"]"


JSON: Mapping[str, Callable[[int], bytes]] = {
    "a long list below long names": lambda n: nested(items(b"1", n)),
    "empty lists": lambda n: items(b"[]", n),
    "empty objects": lambda n: items(b"{}", n),
    "short strings": lambda n: items(b'"ab"', n),
    "numbers": lambda n: items(b"1.5e1", n),
    "long numbers": lambda n: items(b"7" * 4_000, n),
    "one long string": lambda n: b'["' + b"a" * n + b'"]',
    "escapes": lambda n: b'["' + b"\\u0041" * (n // 6) + b'"]',
    "quotes that never close": lambda n: b"," * (n // 2) + b'"' + b'\\"' * (n // 4),
    "brackets that never close": lambda n: b"[" * n,
    "many names": lambda n: b"{%s}" % b",".join(b'"%06x":0' % k for k in range(n // 11)),
    "one name again and again": lambda n: b"{%s}" % b",".join([b'"a":0'] * (n // 6)),
    "a flaw at the end": lambda n: nested(items(b"1", n - 12)[:-1] + b',"\\u0000"]'),
}

FORM: Mapping[str, Callable[[int], bytes]] = {
    "escapes": lambda n: b"a=" + b"%41" * ((n - 2) // 3),
    "fields": lambda n: b"&".join([b"a=1"] * (n // 4)),
    "ampersands": lambda n: b"&" * n,
    "plus signs": lambda n: b"a=" + b"+" * (n - 2),
    "broken escapes": lambda n: b"a=" + b"%" * (n - 2),
}

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def random_base64(n: int) -> str:
    return "".join(Random(1).choices(BASE64, k=n))


TEXT: Mapping[str, Callable[[int], str]] = {
    "letters": lambda n: "a" * n,
    "escapes of an address": lambda n: "%41" * (n // 3),
    "escapes below escapes": lambda n: "%252525" * (n // 7),
    "base64": random_base64,
    "runs of base64": lambda n: " ".join([random_base64(16)] * (n // 17)),
    "escapes of JSON": lambda n: "\\u0041" * (n // 6),
    "backslashes": lambda n: "\\" * n,
    "every encoding": lambda n: "%41\\u0041&#65;+" * (n // 16),
    "names of secrets": lambda n: "token=" * (n // 6),
    "prefixes of a name": lambda n: "a_" * (n // 2) + "token",
    "quotes of a name": lambda n: 'token\\\\"' * (n // 8),
    "addresses": lambda n: "a://" * (n // 4),
    "spaces": lambda n: ("cookie" + " " * 30) * (n // 36),
    "beginnings of a secret": lambda n: "CANARY-" * (n // 7),
}
