"""Read the HTTP proxy from the environment variables, for policies with `environment`."""

from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import (  # type: ignore[attr-defined]  # typeshed has one for some systems only
    getproxies_environment,
    proxy_bypass_environment,
)

from retoma.engine.rules.errors import BadInput
from retoma.outbound.policy import PORTS, Proxy
from retoma.words import say


def environment_proxy(scheme: str, host: str) -> Proxy | None:
    """Return the proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY; None if NO_PROXY excludes the host."""
    named = getproxies_environment()
    text = named.get(scheme) or named.get("all")
    if not text or proxy_bypass_environment(host, named):
        return None
    try:
        return _proxy(urlsplit(text if "://" in text else f"http://{text}"))
    except ValueError:
        pass
    # Do not show the value: it may hold a password.
    raise BadInput(say("the proxy in the environment must be an http:// or https:// URL"))


def _proxy(parts: SplitResult) -> Proxy:
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError
    return Proxy(
        host=parts.hostname,
        port=parts.port or PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password) if parts.password else None,
        tls=parts.scheme == "https",
        resolves=True,  # an operator's proxy is trusted to resolve names
    )
