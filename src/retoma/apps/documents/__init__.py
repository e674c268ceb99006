"""Documents: classified by a model out of a closed set, an execution that never hangs (seed 001)."""

from retoma.manifest import Application, JsonBody
from retoma.words import say

APP = Application(
    name="documents",
    title=say("Documents"),
    submits=False,
    stories="retoma.apps.documents.steps:stories",
    watch="retoma.apps.documents.store.executions:watch",
    mend="retoma.apps.documents.steps:watch_over",
    watched_by_server=True,
    checks="retoma.apps.documents.checks:check",
    router="retoma.apps.documents.api:routes",
    pages="retoma.apps.documents.pages:routes",
    templates="retoma.apps.documents.pages",
    menu=(
        (say("Classifier"), "/classificador"),
        (say("Projects"), "/classificador/projeto"),
    ),
    uploads=(
        ("/classificador/arquivos", 2 << 30),
    ),  # an archive of thousands, never held whole
    large_json=(
        JsonBody("/classificador/pastas", 1 << 16),  # a path; but it may take its time
        JsonBody("/classificador/execucoes", 16 << 20, keys=50_000),  # ten thousand documents
        JsonBody("/classificador/nova", 16 << 20, keys=50_000, text=4 << 20),  # and a manifest
    ),
    schedules=(("documents.tidy", "17 4 * * *"),),
    migrations="retoma.apps.documents.migrations",
    views=("execucoes_classificacao", "resultados_classificacao"),
    refers=(("documents", "job"),),
)
