"""One request on its way: what is asked, of whom, and whether it may already have happened."""

import json as jsons
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import httpx2

from retoma.engine.rules.errors import BadInput, Permanent, Transient, Unsure
from retoma.outbound.policy import Blocked, Policy, Proxy, host_of, port_of, revealed
from retoma.outbound.sorting import Sort
from retoma.secret import Secret
from retoma.words import say

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
SAFE: Final = ("GET", "HEAD", "OPTIONS")  # they change nothing, however often they arrive
REDIRECTS: Final = (301, 302, 303, 307, 308)

TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
# Whoever sets these speaks to the connection, not to the service; we do that ourselves.
OURS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te"),
        *("trailer", "upgrade", "expect", "proxy-authorization", "proxy-connection"),
        "accept-encoding",
    }
)
# What may follow to another host. Any other header may be a key under a name we do not know.
HARMLESS: Final = frozenset({"accept", "accept-language", "user-agent"})
ALWAYS: Final = {"accept": "*/*", "accept-encoding": "gzip", "user-agent": "retoma"}


Failure = Transient | Permanent | Unsure


@dataclass(slots=True)
class Call:
    """Changes as it is sent on from one address to the next."""

    policy: Policy
    method: str
    url: httpx2.URL = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    content: bytes = field(default=b"", repr=False)
    proxy: Proxy | None = None
    maybe: bool = False  # it is a deed and was sent: it may have happened

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def port(self) -> int:
        return port_of(self.url)

    @property
    def is_deed(self) -> bool:
        """Whether it matters how often it arrives."""
        return self.policy.paid or self.method not in SAFE

    @property
    def where(self) -> str:
        """Without path and query: either may hold a key."""
        return f"{self.policy.purpose}: {self.method} {self.url.scheme}://{self.host}"

    def request(self, **extensions: Any) -> httpx2.Request:
        times = {"connect": self.policy.connect, "read": self.policy.read}
        timeout = {**times, "write": self.policy.read, "pool": None}
        # Whether it was sent matters to a deed alone, and being told of every turn of the wire is dear.
        told = {"trace": self._trace} if self.is_deed else {}
        return httpx2.Request(
            self.method,
            self.url,
            headers={**ALWAYS, **self.headers},
            content=self.content or None,
            extensions={"timeout": timeout, **told, **extensions},
        )

    def sent(self) -> None:
        self.maybe = self.maybe or self.is_deed

    def failed(self, sort: Sort, what: str, wait: float | None = None) -> Failure:
        """The failure that the house knows; Unsure where it may have happened all the same."""
        text = f"{self.where}: {what}"
        if self.maybe:
            code = sort.code if sort.raises is Permanent else "unsure"
            return Unsure(say("{text}; it may have happened", text=text), code=code)
        if issubclass(sort.raises, Transient):
            return sort.raises(text, code=sort.code, retry_after=wait)
        return Permanent(text, code=sort.code)

    def send_on(self, status: int, location: str) -> None:
        """To where an answer points, if that may be: keys stay behind where the host changes."""
        try:
            target = self.policy.check(self.url.join(location))
        except (httpx2.InvalidURL, ValueError):
            raise Blocked(say("the redirect leads to no address we understand")) from None
        if (self.url.scheme, target.scheme) == ("https", "http"):
            raise Blocked(say("a redirect from https to http is not followed"))
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            self.method = "HEAD" if self.method == "HEAD" else "GET"
            self.content = b""
            self.headers.pop("content-type", None)
        if _origin(self.url) != _origin(target):
            if self.content:
                raise Blocked(say("a body is not sent on to another host"))
            self.headers = {name: self.headers[name] for name in self.headers.keys() & HARMLESS}
        self.url = target

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        # To a proxy we say CONNECT first: that changes nothing.
        if event == "http11.send_request_headers.started" and (
            info["request"].method != b"CONNECT"
        ):
            self.sent()


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
    """The call, if all that we were told may be sent; else BadInput, or Blocked for its address."""
    if method not in METHODS:
        raise BadInput(say("a method is one of {known}", known=", ".join(METHODS)))
    parsed = policy.check(url)
    said = _headers(headers or {})
    try:
        if params:
            parsed = parsed.copy_merge_params(_revealed(params))
        kind, body = _body(json, form, content)
    except (TypeError, ValueError, RecursionError):
        pass
    else:
        if kind:
            said.setdefault("content-type", kind)
        return Call(policy, method, parsed, said, body, proxy)
    # Raised out here: what went wrong holds what was to be sent.
    raise BadInput(say("the parameters or the body cannot be written as they must be"))


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, host_of(url), port_of(url)


def _headers(told: Mapping[str, str | Secret]) -> dict[str, str]:
    said = {}
    for name, given in told.items():
        value = revealed(given)
        if not TOKEN.fullmatch(str(name)) or not VALUE.fullmatch(str(value)):
            # Never the value, nor a name that is none: either may be a key.
            raise BadInput(say("a header is a name and a value of plain ASCII, in one line"))
        if name.lower() in OURS:
            raise BadInput(say("the header {name} is ours to set", name=name.lower()))
        said[name.lower()] = str(value).strip()
    return said


def _body(
    json: Any, form: Mapping[str, Any] | None, content: bytes | str | None
) -> tuple[str, bytes]:
    if sum(each is not None for each in (json, form, content)) > 1:
        raise BadInput(say("a body is json, form or content, not two of them"))
    if form is not None:
        text = urlencode(_revealed(form), doseq=True)
        return "application/x-www-form-urlencoded", text.encode()
    if json is None:
        return "", content.encode() if isinstance(content, str) else b"".join([content or b""])
    text = jsons.dumps(json, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return "application/json", text.encode()


def _revealed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: revealed(value) for name, value in values.items()}
