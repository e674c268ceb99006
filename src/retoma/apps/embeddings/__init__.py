"""Embeddings: a corpus embedded by any number of runners, every text once, and searched (seed 002)."""

from retoma.manifest import Application, JsonBody
from retoma.words import say

APP = Application(
    name="embeddings",
    title=say("Embeddings"),
    submits=False,
    stories="retoma.apps.embeddings.kinds:stories",
    checks="retoma.apps.embeddings.checks:check",
    router="retoma.apps.embeddings.api:routes",
    pages="retoma.apps.embeddings.pages:routes",
    templates="retoma.apps.embeddings.pages",
    menu=(
        (say("Collections"), "/embeddings"),
        (say("Search"), "/embeddings/busca"),
        (say("What failed"), "/embeddings/falhas"),
    ),
    # What one text has wrong is said of that text alone.
    large_json=(
        JsonBody("/api/embeddings/documents", 16 << 20, text=None),
        JsonBody("/embeddings/nova", 16 << 20, text=None),
    ),
    uploads=(("/api/embeddings/files", 50 << 20), ("/embeddings/nova/arquivo", 50 << 20)),
    schedules=(("embeddings.tidy", "27 * * * *"),),
    migrations="retoma.apps.embeddings.migrations",
    views=("queue_jobs",),
    refers=(("embeddings_documents", "job"),),
)
