"""A library of ads: tens of thousands, the same for the same seed, on pages of two layouts."""

from retoma.apps.ads.sandbox.library import Ad, Library, Wanted
from retoma.apps.ads.sandbox.pages import build_pages

__all__ = ["Ad", "Library", "Wanted", "build_pages"]
