"""Send mail by SMTP through the operator's mail server.

Blocking, as smtplib is: handlers call `send` in a thread.
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
LATER = 500  # SMTP replies below it are temporary


class Tls(StrEnum):
    """How the connection is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A mail server, the login, and the addresses of sender and recipients."""

    host: str
    port: int
    tls: Tls
    sender: str
    to: Sequence[str]
    user: str | None = None
    password: Secret | None = None


def send(server: MailServer, message_id: str, subject: str, text: str) -> list[str]:
    """Send a message and return its recipients. Mail programs treat the same `message_id` as one message."""
    message = EmailMessage()
    message["From"] = server.sender
    message["To"] = ", ".join(server.to)
    message["Subject"] = " ".join(subject.split())
    message["Message-ID"] = message_id
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    with _translate_errors(server), _connect(server) as connection:
        connection.send_message(message)
    return list(server.to)


@contextmanager
def _connect(server: MailServer) -> Iterator[smtplib.SMTP]:
    if server.tls is Tls.TLS:
        trust = ssl.create_default_context()
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, server.port, timeout=TIMEOUT, context=trust
        )
    else:
        smtp = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT)
    with smtp as connection:
        if server.tls is Tls.STARTTLS:
            connection.starttls(context=ssl.create_default_context())
        if server.user is not None and server.password is not None:
            connection.login(server.user, server.password.reveal())
        yield connection


@contextmanager
def _translate_errors(server: MailServer) -> Iterator[None]:
    """Raise SMTP errors as our own exceptions, without any content of the message."""
    where = f"alerts: SMTP {server.host}"
    try:
        yield
    except smtplib.SMTPAuthenticationError as error:
        if error.smtp_code < LATER:
            raise _rejected(where, error.smtp_code) from None
        text = say("{where}: the server rejected the user or password", where=where)
        raise Permanent(text, code="config") from None
    except smtplib.SMTPNotSupportedError as error:
        raise Permanent(f"{where}: {error}", code="config") from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise _rejected(where, max(codes)) from None
    except smtplib.SMTPResponseException as error:
        raise _rejected(where, error.smtp_code) from None
    except smtplib.SMTPServerDisconnected:
        raise Unsure(
            say("{where}: the connection broke; the message may have been sent", where=where)
        ) from None
    except smtplib.SMTPException as error:
        raise Permanent(f"{where}: {type(error).__name__}", code="config") from None
    except ssl.SSLCertVerificationError as error:
        text = say(
            "{where}: the certificate is not trusted: {why}",
            where=where,
            why=error.verify_message,
        )
        raise Permanent(text, code="config") from None
    except OSError:
        raise Transient(say("{where}: cannot connect", where=where), code="no_answer") from None


def _rejected(where: str, code: int) -> Transient | Permanent:
    text = say("{where}: answered {status}", where=where, status=code)
    return Transient(text) if code < LATER else Permanent(text, code="permanent")
