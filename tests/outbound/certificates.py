"""An authority of its own, for servers that speak TLS in a test."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
AGE = timedelta(days=36_500)


class Authority:
    """`trust` believes it, and nobody else does."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("tests")
        self._own = self._signed(
            self._name, self._key, x509.BasicConstraints(ca=True, path_length=0)
        )
        self.trust = ssl.create_default_context(
            cadata=self._own.public_bytes(serialization.Encoding.PEM).decode()
        )

    @property
    def pem(self) -> bytes:
        """What a program is given that is to believe it: `SSL_CERT_FILE`."""
        return _pem(self._own)

    def server(self, host: str, seen: list[str | None] | None = None) -> ssl.SSLContext:
        """Speaks for a host; the names it was called by are kept in `seen`."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with TemporaryDirectory() as folder:
            file = Path(folder, "pair.pem")
            file.write_bytes(_pem(key) + _pem(self._signed(_name(host), key, names)))
            context.load_cert_chain(file)

        def called(_: Any, name: str | None, __: Any) -> None:
            if seen is not None:
                seen.append(name)

        context.sni_callback = called
        return context

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(BEGAN)
            .not_valid_after(BEGAN + AGE)
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(thing: ec.EllipticCurvePrivateKey | x509.Certificate) -> bytes:
    if isinstance(thing, x509.Certificate):
        return thing.public_bytes(serialization.Encoding.PEM)
    return thing.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
