"""The services of the document: workers that scrape, writers that store, and what their answers mean."""

from retoma.apps.ads.clients.services import (
    ScrapeSeen,
    WorkerClient,
    WriterClient,
    WriteSeen,
    storage_scheme,
)

__all__ = ["ScrapeSeen", "WorkerClient", "WriteSeen", "WriterClient", "storage_scheme"]
