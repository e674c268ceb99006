"""What the pages load: our own style and programs, and those that ./run fetched.

Read once, compressed once. An address carries a hash of what stands behind it, so a browser keeps a
file for as long as it is the same, and a new one is loaded at once.
"""

import gzip
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

MEDIA: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FETCHED: Final = (
    *("vendor/htmx.min.js", "vendor/hx-sse.min.js"),
    *("vendor/uPlot.iife.min.js", "vendor/uPlot.min.css"),
)
ICONS: Final = "icons.svg"  # what we draw, each as a symbol
SYMBOL: Final = re.compile(rb'<symbol id="([a-z]+)"')
ANY_ICON: Final = "app"
IMPORTED: Final = re.compile(rb'(?<= from ")\./([a-z]+\.js)(?=";)')
FOR_EVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, ready to be sent."""

    name: str
    media: str
    raw: bytes
    packed: bytes
    mark: str  # of its bytes

    @property
    def address(self) -> str:
        return f"/static/{self.name}?v={self.mark}"


class Assets:
    """All of them, by name."""

    def __init__(self, found: Mapping[str, Asset]) -> None:
        self._found = found

    @property
    def missing(self) -> list[str]:
        """What ./run fetches, and is not there."""
        return [name for name in FETCHED if name not in self._found]

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def address(self, name: str) -> str:
        """Where a page finds it."""
        return self._found[name].address

    def icon(self, name: str) -> Markup:
        """A drawing in the colour of the text; nothing for whoever has it read aloud. An application
        that we have not drawn has the one of all."""
        sprite = self._found[ICONS]
        drawn = name if name.encode() in SYMBOL.findall(sprite.raw) else ANY_ICON
        return Markup(
            '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"/></svg>'
        ).format(sprite.address, drawn)

    def answer(self, name: str, accepted: str) -> Response | None:
        """The file, packed for whoever takes it so; None: there is none."""
        asset = self._found.get(name)
        if asset is None:
            return None
        packs = "gzip" in accepted
        headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
        if packs:
            headers["Content-Encoding"] = "gzip"
        return Response(
            asset.packed if packs else asset.raw, media_type=asset.media, headers=headers
        )


def read_assets() -> Assets:
    root = resources.files("retoma.web.pages") / "static"
    found = {asset.name: asset for asset in _below(root, "")}
    return Assets({name: _linked(asset, found) for name, asset in found.items()})


def _linked(asset: Asset, found: Mapping[str, Asset]) -> Asset:
    """What it imports is named by what that is, too; what is imported imports nothing itself."""
    raw = IMPORTED.sub(lambda name: found[name[1].decode()].address.encode(), asset.raw)
    return asset if raw == asset.raw else _packed(asset.name, asset.media, raw)


def _below(folder: Traversable, prefix: str) -> Iterator[Asset]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _below(each, f"{prefix}{each.name}/")
        elif (media := MEDIA.get(each.name.rpartition(".")[2])) is not None:
            yield _packed(f"{prefix}{each.name}", media, each.read_bytes())


def _packed(name: str, media: str, raw: bytes) -> Asset:
    packed = gzip.compress(raw, 9, mtime=0)
    return Asset(name, media, raw, packed, sha256(raw).hexdigest()[:12])
