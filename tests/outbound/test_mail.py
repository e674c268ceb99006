"""Letters go to the server the operator named, over TLS it can prove, and say nothing of our password."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from retoma import Permanent, Transient
from retoma.outbound.mail import MailServer, Tls, send
from retoma.secret import Secret
from tests.outbound.certificates import Authority
from tests.outbound.post import PASSWORD, USER, Post, posted


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def spoken(authority: Authority, tmp_path: Path, monkeypatch: Any) -> ssl.SSLContext:
    """A server that is believed by whoever believes this machine's authorities."""
    file = tmp_path / "authority.pem"
    file.write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return authority.server("localhost")


def box(post: Post, tls: Tls, **how: Any) -> MailServer:
    given = {
        "host": "localhost",
        "port": post.port,
        "tls": tls,
        "sender": "retoma@example.org",
        "to": ["ana@example.org"],
        "user": USER,
        "password": Secret(PASSWORD),
    }
    return MailServer(**{**given, **how})


def sent(postbox: MailServer) -> list[str]:
    return send(postbox, "<1@retoma>", "a\nsubject", "text")


@pytest.mark.parametrize("tls", [Tls.STARTTLS, Tls.TLS])
def test_a_letter_goes_over_tls_to_a_server_that_asks_who_it_is(spoken, tls):
    with posted(tls=spoken, at_once=tls is Tls.TLS) as post:
        assert ["ana@example.org"] == sent(box(post, tls))

    [letter] = post.letters
    assert ("a subject", "<1@retoma>") == (letter["Subject"], letter["Message-ID"])
    assert {b"STARTTLS", b"ehlo"} >= {line.split()[0] for line in post.open}


@pytest.mark.parametrize("tls", [Tls.STARTTLS, Tls.TLS])
def test_a_wrong_password_is_said_clearly_and_without_it(spoken, tls):
    wrong = "CANARY-wrong"
    with (
        posted(tls=spoken, at_once=tls is Tls.TLS) as post,
        pytest.raises(Permanent, match="rejected the user or password") as failed,
    ):
        sent(box(post, tls, password=Secret(wrong)))

    assert "config" == failed.value.code
    assert "CANARY" not in str(failed.value)
    assert failed.value.__suppress_context__, "what they answered is nobody's to see"
    assert [] == post.letters


def test_a_server_that_cannot_look_now_is_asked_again(spoken):
    with (
        posted(tls=spoken, login=b"454 not now") as post,
        pytest.raises(Transient, match="answered 454"),
    ):
        sent(box(post, Tls.STARTTLS))


def test_a_server_nobody_vouches_for_is_told_nothing(authority, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nobody.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    spoken = authority.server("localhost")
    for tls in (Tls.STARTTLS, Tls.TLS):
        with (
            posted(tls=spoken, at_once=tls is Tls.TLS) as post,
            pytest.raises(Permanent, match="certificate is not trusted") as failed,
        ):
            sent(box(post, tls))
        assert "config" == failed.value.code
        assert not {"AUTH", "MAIL", "DATA"} & set(post.asked)


def test_a_server_that_goes_by_another_name_is_told_nothing(authority, tmp_path, monkeypatch):
    file = tmp_path / "authority.pem"
    file.write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with (
        posted(tls=authority.server("example.org")) as post,
        pytest.raises(Permanent, match="certificate is not trusted"),
    ):
        sent(box(post, Tls.STARTTLS))
    assert "AUTH" not in post.asked


def test_where_no_tls_is_offered_nothing_goes_in_the_open(spoken):
    """As somebody on the way would have it, who takes the offer out."""
    with (
        posted(tls=spoken, offers=False) as post,
        pytest.raises(Permanent, match="STARTTLS") as failed,
    ):
        sent(box(post, Tls.STARTTLS))

    assert "config" == failed.value.code
    assert not {"AUTH", "MAIL", "DATA"} & set(post.asked)


def test_nobody_there_is_not_now():
    with posted() as post:
        pass
    with pytest.raises(Transient, match="cannot connect"):
        sent(box(post, Tls.NONE, user=None))
