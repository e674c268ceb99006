"""The applications: rooms without doors between them, each the same six files. One of your own begins with what is here."""

from retoma.engine.handlers.kinds import job
from retoma.manifest import Application

__all__ = ["Application", "job"]
