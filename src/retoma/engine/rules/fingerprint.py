"""Which failures are one and the same: a code, and a message without what differs from job to job."""

import re
from hashlib import sha256

LENGTH = 12  # hex digits: few enough to read out, many enough for one house
SEEN = 300  # characters of a message that tell one failure from another
LOOKED_AT = 4 * SEEN

# The longest first: a quoted address is a quoted text, the digits in an id are part of the id.
VARIES = re.compile(
    rf"""'[^']{{0,{LOOKED_AT}}}'|"[^"]{{0,{LOOKED_AT}}}"|«[^»]{{0,{LOOKED_AT}}}»|“[^”]{{0,{LOOKED_AT}}}”"""
    r"|[a-z][a-z0-9+.-]{0,30}://\S+"
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b"
    r"|\d+(?:[.,:]\d+)*",
    re.IGNORECASE,
)


def fingerprint(code: str | None, message: str) -> str:
    """Equal for failures that a person would call the same."""
    return sha256(f"{code or ''}\n{shape(message)}".encode()).hexdigest()[:LENGTH]


def shape(message: str) -> str:
    """The message with `#` for every number, id, address and quoted text."""
    return " ".join(VARIES.sub("#", message[:LOOKED_AT]).split())[:SEEN]
