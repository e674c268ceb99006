"""The one way out for letters: SMTP, to the one server the operator named.

Blocking, as smtplib is: a story sends a letter in a thread of its own.
"""

import smtplib
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from enum import StrEnum

from retoma.engine.rules.errors import Permanent, Transient, Unsure
from retoma.secret import Secret
from retoma.words import say

TIMEOUT = 30.0  # seconds without a byte
LATER = 500  # a reply below it may be another one tomorrow


class Tls(StrEnum):
    """How the connection is kept from being read."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Postbox:
    """A server that takes letters, and who we are to it."""

    host: str
    port: int
    tls: Tls
    sender: str
    to: Sequence[str]
    user: str | None = None
    password: Secret | None = None


def send(postbox: Postbox, message_id: str, subject: str, text: str) -> list[str]:
    """Who it was sent to. The same `message_id` is the same letter, however often it is sent."""
    letter = EmailMessage()
    letter["From"] = postbox.sender
    letter["To"] = ", ".join(postbox.to)
    letter["Subject"] = " ".join(subject.split())
    letter["Message-ID"] = message_id
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content(text)
    with _sorted(postbox), _connected(postbox) as server:
        server.send_message(letter)
    return list(postbox.to)


@contextmanager
def _connected(postbox: Postbox) -> Iterator[smtplib.SMTP]:
    if postbox.tls is Tls.TLS:
        trust = ssl.create_default_context()
        made: smtplib.SMTP = smtplib.SMTP_SSL(
            postbox.host, postbox.port, timeout=TIMEOUT, context=trust
        )
    else:
        made = smtplib.SMTP(postbox.host, postbox.port, timeout=TIMEOUT)
    with made as server:
        if postbox.tls is Tls.STARTTLS:
            server.starttls(context=ssl.create_default_context())
        if postbox.user is not None and postbox.password is not None:
            server.login(postbox.user, postbox.password.reveal())
        yield server


@contextmanager
def _sorted(postbox: Postbox) -> Iterator[None]:
    """Failures as the house knows them, with nothing in them that was carried."""
    where = f"alerts: SMTP {postbox.host}"
    try:
        yield
    except smtplib.SMTPAuthenticationError as error:
        if error.smtp_code < LATER:
            raise _refused(where, error.smtp_code) from None
        told = say("{where}: it refused our user or password", where=where)
        raise Permanent(told, code="config") from None
    except smtplib.SMTPNotSupportedError as error:
        raise Permanent(f"{where}: {error}", code="config") from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise _refused(where, max(codes)) from None
    except smtplib.SMTPResponseException as error:
        raise _refused(where, error.smtp_code) from None
    except smtplib.SMTPServerDisconnected:
        raise Unsure(
            say("{where}: the connection broke; it may have happened", where=where)
        ) from None
    except smtplib.SMTPException as error:
        raise Permanent(f"{where}: {type(error).__name__}", code="config") from None
    except ssl.SSLCertVerificationError as error:
        told = say(
            "{where}: its certificate is not trusted: {why}",
            where=where,
            why=error.verify_message,
        )
        raise Permanent(told, code="config") from None
    except OSError:
        raise Transient(say("{where}: no connection", where=where), code="no_answer") from None


def _refused(where: str, code: int) -> Transient | Permanent:
    told = say("{where}: answered {status}", where=where, status=code)
    return Transient(told) if code < LATER else Permanent(told, code="permanent")
