"""Who is told of alerts: a webhook, people by letter. Each notice is a job of the house.

That a notice is about to be sent is committed first. Where a sender dies before it could say that it
was sent, nobody knows, and it is sent again under the same key: one who is told twice can see that it
is the same, one who is never told cannot.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.ops.alerts import NOTIFY, sentence
from retoma.engine.rules.outcome import Unknown
from retoma.engine.rules.retry import Retry
from retoma.engine.store.alerts import Alert
from retoma.library import Retoma
from retoma.outbound import Outbound, Policy
from retoma.outbound.mail import MailServer, Tls, send
from retoma.secret import Secret
from retoma.settings import Settings
from retoma.vault.ref import SecretRef, parse_secret
from retoma.words import say, tell

WEBHOOK: Final = f"{NOTIFY}webhook"
EMAIL: Final = f"{NOTIFY}email"
TRIES: Final = Retry(attempts=15, base=2.0, cap=600.0)  # an evening without their server
PURPOSE: Final = "alerts"
CARD: Final = "application/vnd.microsoft.card.adaptive"


class Shape(StrEnum):
    """Who reads the body."""

    PLAIN = "plain"
    SLACK = "slack"
    TEAMS = "teams"


@dataclass(frozen=True, slots=True)
class Notice:
    """The payload: which alert, and whether it was raised or closed."""

    alert: int
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where notices are posted, and with what they are signed."""

    url: Secret  # Slack's is a key in itself
    policy: Policy
    shape: Shape
    secret: Secret | None


def notice_kinds(retoma: Retoma, settings: Settings) -> Iterator[Kind]:
    """A kind for each destination that the settings name; they run where the API is served."""
    webhook = webhook_of(settings)
    if webhook is not None:
        yield _webhook_kind(retoma, webhook)
    postbox = postbox_of(settings)
    if postbox is not None:
        yield _email_kind(retoma, postbox)


def webhook_of(settings: Settings) -> Webhook | None:
    url = _secret(settings.alert_webhook)
    if url is None:
        return None
    return Webhook(
        url=url,
        policy=Policy.toward(PURPOSE, url.reveal()),
        shape=Shape(settings.alert_webhook_shape),
        secret=_secret(settings.alert_webhook_secret),
    )


def postbox_of(settings: Settings) -> MailServer | None:
    to = [each.strip() for each in settings.alert_email.split(",") if each.strip()]
    if not to or settings.smtp_host is None or settings.smtp_from is None:
        return None
    return MailServer(
        host=settings.smtp_host,
        port=settings.smtp_port,
        tls=Tls(settings.smtp_tls),
        sender=settings.smtp_from,
        to=tuple(to),
        user=settings.smtp_user,
        password=_secret(settings.smtp_password),
    )


def _secret(told: Any) -> Secret | None:
    if told is None:
        return None
    found = parse_secret(told.get_secret_value())
    return found.read() if isinstance(found, SecretRef) else found


def _webhook_kind(retoma: Retoma, webhook: Webhook) -> Kind:
    @job(name=WEBHOOK, retry=TRIES)
    async def post(ctx: Context, notice: Notice) -> int:
        body = await ctx.step("read", _read, retoma, notice)

        async def posted() -> int:
            async with Outbound(clock=retoma.clock) as out:
                return await _post(out, webhook, body, retoma.clock.wall())

        return await ctx.step("post", posted, once=True, unknown=Unknown.REPEAT)

    kind: Kind = post.kind  # type: ignore[attr-defined]
    return kind


def _email_kind(retoma: Retoma, postbox: MailServer) -> Kind:
    @job(name=EMAIL, retry=TRIES)
    async def write(ctx: Context, notice: Notice) -> list[str]:
        body = await ctx.step("read", _read, retoma, notice)
        letter = (f"<{body['key']}@retoma>", f"[retoma] {body['text']}", _letter(body))
        return await ctx.step(
            "send", send, postbox, *letter, where="thread", once=True, unknown=Unknown.REPEAT
        )

    kind: Kind = write.kind  # type: ignore[attr-defined]
    return kind


async def _read(retoma: Retoma, notice: Notice) -> dict[str, Any]:
    """What is told, as it stands when it is first told."""
    alert = await retoma.alerts.get(notice.alert)
    house = await retoma.database_id()
    return _document(alert, notice.change, f"{house}-alert-{alert.id}-{notice.change}")


def _document(alert: Alert, change: str, key: str) -> dict[str, Any]:
    told = tell(sentence(alert))
    over = change == "closed"
    return {
        "key": key,
        "alert": alert.id,
        "change": change,
        "rule": str(alert.rule),
        "subject": alert.subject,
        "severity": str(alert.severity),
        "since": alert.since.isoformat(),
        "closed_at": alert.closed_at.isoformat() if over and alert.closed_at else None,
        "details": alert.details,
        "text": tell(say("over: {told}", told=told)) if over else told,
    }


async def _post(out: Outbound, webhook: Webhook, body: dict[str, Any], now: float) -> int:
    content = json.dumps(shaped(webhook.shape, body), ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": body["key"],
        **signed(webhook.secret, content, int(now)),
    }
    answer = await out.post(
        webhook.policy, webhook.url.reveal(), headers=headers, content=content
    )
    return answer.status


def signed(secret: Secret | None, content: bytes, now: int) -> Mapping[str, str]:
    """When it was sent, and that it was us: the HMAC of both."""
    if secret is None:
        return {}
    told = hmac.new(secret.reveal().encode(), f"{now}.".encode() + content, hashlib.sha256)
    return {"Retoma-Timestamp": str(now), "Retoma-Signature": f"v1={told.hexdigest()}"}


def shaped(shape: Shape, body: dict[str, Any]) -> dict[str, Any]:
    """The body as whoever reads it wants it."""
    line = f"{body['rule']} ({body['severity']}): {body['text']}"
    match shape:
        case Shape.PLAIN:
            return body
        case Shape.SLACK:
            return {"text": _plain_for_slack(line)}
        case Shape.TEAMS:
            block = {"type": "TextBlock", "text": line, "wrap": True}
            card = {"type": "AdaptiveCard", "version": "1.4", "body": [block]}
            return {
                "type": "message",
                "attachments": [{"contentType": CARD, "content": card}],
            }


def _plain_for_slack(text: str) -> str:
    """Names come from outside: none of them is a link, or calls a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _letter(body: dict[str, Any]) -> str:
    told = {name: body[name] for name in ("rule", "subject", "severity", "since", "closed_at")}
    lines = [f"{name}: {value}" for name, value in told.items() if value is not None]
    return "\n".join([body["text"], "", *lines, ""])
