"""Certificates of twinnet's own, each signed by an authority whose key is thrown away."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from twinnet.errors import NotAvailable

__all__ = ["MadeCertificate", "make_certificate"]

_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
"""Of RFC 5280, 4.2.1.3."""


@dataclass(frozen=True)
class MadeCertificate:
    """A certificate with its key and its authority, in PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


def make_certificate(
    issuer: str, subject: str, days: int, remedy: str, addresses: Sequence[IPv4Address | IPv6Address] = ()
) -> MadeCertificate:
    """Make an authority called `issuer`, and a certificate of it for `subject` at `addresses`, for servers and clients,
    with a key on the curve P-256. Nobody can make further certificates of this authority.

    Raises
    ------
    NotAvailable
        The package ``cryptography`` is not installed; `remedy` says what to do.
    """
    try:
        x509 = importlib.import_module("cryptography.x509")
        oid = importlib.import_module("cryptography.x509.oid")
        elliptic = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ec")
        hashes = importlib.import_module("cryptography.hazmat.primitives.hashes")
        encoding = importlib.import_module("cryptography.hazmat.primitives.serialization")
    except ImportError as error:
        raise NotAvailable(f"certificates need {error.name}, which is not installed", remedy) from None
    start = datetime.now(UTC) - timedelta(hours=1)
    # Clocks of machines differ; an hour is forgiven.
    end = start + timedelta(days=days, hours=1)

    def named(name: str) -> Any:
        return x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, name)])

    def signed(name: str, public: Any, signer: Any, authority: bool) -> Any:
        usage = dict.fromkeys(_USAGES, False)
        usage |= {"key_cert_sign": True} if authority else {"digital_signature": True}
        purposes = [oid.ExtendedKeyUsageOID.SERVER_AUTH, oid.ExtendedKeyUsageOID.CLIENT_AUTH]
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(issuer))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(identifier, critical=False)
        )
        if not authority:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        if not authority and addresses:
            names = x509.SubjectAlternativeName([x509.IPAddress(one) for one in addresses])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(signer, hashes.SHA256())

    signer = elliptic.generate_private_key(elliptic.SECP256R1())
    member = elliptic.generate_private_key(elliptic.SECP256R1())
    pem = encoding.Encoding.PEM
    return MadeCertificate(
        signed(issuer, signer.public_key(), signer, authority=True).public_bytes(pem),
        signed(subject, member.public_key(), signer, authority=False).public_bytes(pem),
        member.private_bytes(pem, encoding.PrivateFormat.PKCS8, encoding.NoEncryption()),
    )
