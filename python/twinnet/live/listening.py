"""Where the page's server listens: on loopback, or at an address of this machine with TLS."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinnet.errors import BadAddress
from twinnet.made_certificates import MadeCertificate, make_certificate

if TYPE_CHECKING:
    import uvicorn

__all__ = ["LOOPBACK", "Listening", "listening_at"]

_WRITTEN = re.compile(r"(?P<address>\[[0-9A-Fa-f:]+\]|[0-9.]+)(:(?P<port>[0-9]{1,5}))?")
_EXAMPLE = "write an address of this machine, for example 192.0.2.5, 192.0.2.5:8443 or [2001:db8::5]:8443"
_DAYS = 30


@dataclass(frozen=True)
class Listening:
    """An address to listen at.

    Attributes
    ----------
    address
        An address of this machine, as it is given to a socket.
    port
        Its port; 0: a free one.
    certificate
        What is shown to browsers; ``None``: no TLS.
    """

    address: str = "127.0.0.1"
    port: int = 0
    certificate: MadeCertificate | None = None

    @property
    def is_loopback(self) -> bool:
        """True if only this machine reaches it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def scheme(self) -> str:
        """``http`` or ``https``."""
        return "http" if self.certificate is None else "https"

    @property
    def fingerprint(self) -> str | None:
        """The SHA-256 of the certificate as browsers show it; ``None`` without TLS."""
        if self.certificate is None:
            return None
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.certificate.certificate.decode())).hexdigest().upper()
        return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))

    def hosts(self, port: int) -> list[str]:
        """Return the values of ``Host`` of those who mean this server at `port`; the first is that of its address."""
        names = [f"[{self.address}]" if ":" in self.address else self.address]
        names += ["localhost"] if self.address in ("127.0.0.1", "::1") else []
        return [*(f"{name}:{port}" for name in names), *(names if port == (443 if self.certificate else 80) else ())]

    def load(self, config: uvicorn.Config) -> None:
        """Load `config`, with the certificate; its files are there for this moment only."""
        if self.certificate is None:
            config.load()
            return
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
            certificate.write_bytes(self.certificate.certificate)
            key.write_bytes(self.certificate.key)
            config.ssl_certfile, config.ssl_keyfile = str(certificate), str(key)
            config.load()


LOOPBACK = Listening()
"""Where pages are served unless another address is given."""


def listening_at(text: str | None, tls: bool) -> Listening:
    """Return where ``--listen`` `text` and ``--tls`` have the page served.

    Raises
    ------
    BadAddress
        It is no address, or one that others reach, without TLS.
    NotAvailable
        The package ``cryptography`` is not installed.
    """
    found = _WRITTEN.fullmatch(text if text is not None else LOOPBACK.address)
    try:
        address = ipaddress.ip_address(found["address"].strip("[]") if found else "")
        port = int(found["port"] or 0) if found else 0
    except ValueError:
        raise BadAddress(f"{str(text)[:80]!r} is no address to listen at", _EXAMPLE) from None
    if address.is_unspecified or address.is_multicast or port > 65535:
        raise BadAddress(f"{text!r} is no address of one machine: browsers ask for the page by its address", _EXAMPLE)
    if not (tls or address.is_loopback):
        raise BadAddress(
            f"{text} is reached by other machines, and without TLS anybody on the way reads the token",
            "add --tls, or use an SSH tunnel",
        )
    if not tls:
        return Listening(str(address), port)
    made = make_certificate(
        "twinnet live authority", "twinnet live", _DAYS, "install it: pip install cryptography", [address]
    )
    return Listening(str(address), port, made)
