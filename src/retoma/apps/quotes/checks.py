"""Whether the services of a quote take our keys and know our model, asked before a lote is started."""

from importlib.util import find_spec

from retoma.apps.services import check_service, no_key
from retoma.apps.tools import Tools
from retoma.manifest import ServiceCheck, Standing
from retoma.secret import Secret
from retoma.words import say


async def check(tools: Tools) -> list[ServiceCheck]:
    """Anthropic and SerpAPI; FIPE asks for no key."""
    return [await _anthropic(tools), await _serpapi(tools)]


async def _anthropic(tools: Tools) -> ServiceCheck:
    settings, name = tools.settings, "Anthropic"
    if settings.anthropic_key is None:
        return no_key(name, "RETOMA_ANTHROPIC_KEY")
    if find_spec("anthropic") is None:
        return ServiceCheck(
            name,
            Standing.UNKNOWN,
            say("Anthropic's SDK is not installed here"),
            say("pip install 'retoma[anthropic]' where the runners run"),
        )
    return await check_service(
        tools.out,
        name,
        f"{settings.anthropic_url.rstrip('/')}/v1/models/{settings.anthropic_model}",
        headers={
            "x-api-key": Secret(settings.anthropic_key.get_secret_value()),
            "anthropic-version": "2023-06-01",
        },
        key="RETOMA_ANTHROPIC_KEY",
        model=(settings.anthropic_model, "RETOMA_ANTHROPIC_MODEL"),
    )


async def _serpapi(tools: Tools) -> ServiceCheck:
    settings, name = tools.settings, "SerpAPI"
    if settings.serpapi_key is None:
        return no_key(name, "RETOMA_SERPAPI_KEY")
    return await check_service(
        tools.out,
        name,
        f"{settings.serpapi_url.rstrip('/')}/account.json",
        params={"api_key": Secret(settings.serpapi_key.get_secret_value())},
        key="RETOMA_SERPAPI_KEY",
    )
