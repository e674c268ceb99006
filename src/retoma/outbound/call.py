"""One outbound request: its target, its content, and whether the service may already have received it."""

import json as jsons
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import httpx2

from retoma.engine.rules.errors import BadInput, Permanent, Transient, Unsure
from retoma.outbound.failure_types import FailureType
from retoma.outbound.policy import Blocked, Policy, Proxy, host_of, port_of, reveal_secret
from retoma.secret import Secret
from retoma.words import say

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
SAFE: Final = ("GET", "HEAD", "OPTIONS")  # without side effects
REDIRECTS: Final = (301, 302, 303, 307, 308)

TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
# Headers of the connection, which the client sets itself.
OURS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te"),
        *("trailer", "upgrade", "expect", "proxy-authorization", "proxy-connection"),
        "accept-encoding",
    }
)
# Headers that a redirect to another host may keep. Any other header may hold a key.
HARMLESS: Final = frozenset({"accept", "accept-language", "user-agent"})
ALWAYS: Final = {"accept": "*/*", "accept-encoding": "gzip", "user-agent": "retoma"}


Failure = Transient | Permanent | Unsure


@dataclass(slots=True)
class Call:
    """A request; a redirect changes it in place."""

    policy: Policy
    method: str
    url: httpx2.URL = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    content: bytes = field(default=b"", repr=False)
    proxy: Proxy | None = None
    may_have_happened: bool = False  # it has an effect and was sent

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def port(self) -> int:
        return port_of(self.url)

    @property
    def has_effect(self) -> bool:
        """Whether the request has a side effect or costs money, so that it must not be repeated blindly."""
        return self.policy.paid or self.method not in SAFE

    @property
    def where(self) -> str:
        """Describe the request without path and query, because either may hold a key."""
        return f"{self.policy.purpose}: {self.method} {self.url.scheme}://{self.host}"

    def request(self, **extensions: Any) -> httpx2.Request:
        times = {"connect": self.policy.connect, "read": self.policy.read}
        timeout = {**times, "write": self.policy.read, "pool": None}
        # Tracing each event of the connection is expensive; only requests with an effect need it.
        trace = {"trace": self._trace} if self.has_effect else {}
        return httpx2.Request(
            self.method,
            self.url,
            headers={**ALWAYS, **self.headers},
            content=self.content or None,
            extensions={"timeout": timeout, **trace, **extensions},
        )

    def mark_sent(self) -> None:
        self.may_have_happened = self.may_have_happened or self.has_effect

    def failure(
        self, failure_type: FailureType, what: str, wait: float | None = None
    ) -> Failure:
        """Make the exception for this failure; Unsure if the request may have taken effect."""
        text = f"{self.where}: {what}"
        if self.may_have_happened:
            code = failure_type.code if failure_type.raises is Permanent else "unsure"
            return Unsure(say("{text}; it may have happened", text=text), code=code)
        if issubclass(failure_type.raises, Transient):
            return failure_type.raises(text, code=failure_type.code, retry_after=wait)
        return Permanent(text, code=failure_type.code)

    def follow_redirect(self, status: int, location: str) -> None:
        """Point the request at the redirect's target, if the policy allows it. A new host gets no keys."""
        try:
            target = self.policy.check(self.url.join(location))
        except (httpx2.InvalidURL, ValueError):
            raise Blocked(say("the redirect target is not a valid URL")) from None
        if (self.url.scheme, target.scheme) == ("https", "http"):
            raise Blocked(say("redirects from https to http are not followed"))
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            self.method = "HEAD" if self.method == "HEAD" else "GET"
            self.content = b""
            self.headers.pop("content-type", None)
        if _origin(self.url) != _origin(target):
            if self.content:
                raise Blocked(
                    say("a redirect to another host is not followed with a request body")
                )
            self.headers = {name: self.headers[name] for name in self.headers.keys() & HARMLESS}
        self.url = target

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        # CONNECT goes to the proxy first and has no side effect.
        if event == "http11.send_request_headers.started" and (
            info["request"].method != b"CONNECT"
        ):
            self.mark_sent()


def prepare(
    policy: Policy,
    method: str,
    url: str,
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str | Secret] | None = None,
    json: Any = None,
    form: Mapping[str, Any] | None = None,
    content: bytes | str | None = None,
    proxy: Proxy | None = None,
) -> Call:
    """Make the call. Raises BadInput for what cannot be sent, Blocked for an address that is not allowed."""
    if method not in METHODS:
        raise BadInput(say("the method must be one of {known}", known=", ".join(METHODS)))
    parsed = policy.check(url)
    checked_headers = _check_headers(headers or {})
    try:
        if params:
            parsed = parsed.copy_merge_params(_revealed(params))
        kind, body = _encode_body(json, form, content)
    except (TypeError, ValueError, RecursionError):
        pass
    else:
        if kind:
            checked_headers.setdefault("content-type", kind)
        return Call(policy, method, parsed, checked_headers, body, proxy)
    # Raised outside the except block: the original error holds the data, which may be secret.
    raise BadInput(say("the parameters or the body cannot be encoded"))


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, host_of(url), port_of(url)


def _check_headers(headers: Mapping[str, str | Secret]) -> dict[str, str]:
    checked = {}
    for name, given in headers.items():
        value = reveal_secret(given)
        if not TOKEN.fullmatch(str(name)) or not VALUE.fullmatch(str(value)):
            # Show neither the value nor an invalid name: either may be a key.
            raise BadInput(say("a header needs a name and a value of plain ASCII on one line"))
        if name.lower() in OURS:
            raise BadInput(
                say(
                    "the header {name} is set by the client and cannot be given",
                    name=name.lower(),
                )
            )
        checked[name.lower()] = str(value).strip()
    return checked


def _encode_body(
    json: Any, form: Mapping[str, Any] | None, content: bytes | str | None
) -> tuple[str, bytes]:
    if sum(body is not None for body in (json, form, content)) > 1:
        raise BadInput(say("give only one of json, form and content as the body"))
    if form is not None:
        text = urlencode(_revealed(form), doseq=True)
        return "application/x-www-form-urlencoded", text.encode()
    if json is None:
        return "", content.encode() if isinstance(content, str) else b"".join([content or b""])
    text = jsons.dumps(json, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return "application/json", text.encode()


def _revealed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: reveal_secret(value) for name, value in values.items()}
