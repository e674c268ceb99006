"""The scrape worker: one session through one proxy, one scrape at a time, results as one file.

Implements the worker API of the ads orchestrator. Its scrapes are jobs, so a killed worker resumes them.
"""

from retoma.programs.worker.adapters import ADAPTERS, SiteAdapter
from retoma.programs.worker.api import build_worker
from retoma.programs.worker.model import ScrapeStatus, SessionState
from retoma.programs.worker.worker import Config

__all__ = [
    "ADAPTERS",
    "Config",
    "ScrapeStatus",
    "SessionState",
    "SiteAdapter",
    "build_worker",
]
