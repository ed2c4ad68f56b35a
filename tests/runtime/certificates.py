"""A private authority and certificates of it, made for one test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

from ringcast.transports import Tcp


class Authority:
    """Signs certificates; its files are below a folder of the test."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.path = folder / f"{name}.authority.pem"
        self.path.write_bytes(_pem(self._signed(name, self._key, is_authority=True)))

    def member(self, name: str, days: int = 1, usage: ObjectIdentifier | None = None) -> Tcp:
        """TCP for a member with a certificate of this authority, valid up to `days` from now;
        with `usage`, for that alone."""
        key = ec.generate_private_key(ec.SECP256R1())
        path = self._folder / f"{name}.{self._name}.pem"
        path.write_bytes(_pem(self._signed(name, key, days=days, usage=usage)) + _key_pem(key))
        path.chmod(0o600)
        return Tcp(tls_certificate=str(path), tls_authority=str(self.path))

    def _signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        is_authority: bool = False,
        days: int = 1,
        usage: ObjectIdentifier | None = None,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named(self._name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=9))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if usage is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
