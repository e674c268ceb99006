"""Whether OpenRouter takes our key and has the models of the projects, asked before an execution is started."""

from functools import partial
from typing import Final

from retoma.apps.documents import store
from retoma.apps.services import check_service, no_key
from retoma.apps.tools import Tools
from retoma.manifest import ServiceCheck, Standing
from retoma.secret import Secret

MOST_MODELS: Final = 20  # that are asked for


async def check(tools: Tools) -> list[ServiceCheck]:
    """The key once, then each model that a project, or the settings, name."""
    settings, name = tools.settings, "OpenRouter"
    if settings.openrouter_key is None:
        return [no_key(name, "RETOMA_OPENROUTER_KEY")]
    base = settings.openrouter_url.rstrip("/")
    headers = {"authorization": Secret(f"Bearer {settings.openrouter_key.get_secret_value()}")}
    ask = partial(check_service, tools.out, name, headers=headers, key="RETOMA_OPENROUTER_KEY")
    found = [await ask(f"{base}/key")]
    if found[0].standing is not Standing.READY:
        return found
    database = await tools.retoma.database()
    models = await database.read(store.projects.models_of)
    for model in sorted({settings.openrouter_model, *models})[:MOST_MODELS]:
        where = "RETOMA_OPENROUTER_MODEL" if model == settings.openrouter_model else "modelo"
        url = f"{base}/models/{model}/endpoints"
        found.append(await ask(url, model=(model, where)))
    return found
