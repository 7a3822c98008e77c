"""The certificates of a cluster: who has them is in it, and nobody else is listened to."""

from __future__ import annotations

import importlib
import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from twinnet.cluster.engine import REMEDY, distributed
from twinnet.errors import BadFile, BadValue, NotAvailable, reason
from twinnet.given_files import read_given
from twinnet.made_certificates import make_certificate

__all__ = ["DAYS", "Certificates", "default_folder", "new_certificates", "read_certificates"]

DAYS = 365
MOST_DAYS = 3650
_FILES = ("ca.pem", "certificate.pem", "key.pem")
_MAKE = "make them with `twinnet cluster new` and copy the folder to each machine"
_LARGEST_BYTES = 100_000


def default_folder() -> Path:
    """Return the folder of certificates when none is named: `twinnet/cluster` in the user's configuration."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "twinnet" / "cluster"


@dataclass(frozen=True)
class Certificates:
    """The files of a cluster that were read and checked: its authority, and the certificate with its key."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The certificate that has signed the other."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The certificate that members show."""
        return self.folder / "certificate.pem"

    @property
    def key(self) -> Path:
        """Its private key."""
        return self.folder / "key.pem"

    def security(self) -> Any:
        """Dask's settings with which a connection without TLS, or to a stranger, is refused."""
        files: dict[str, str] = {"tls_ca_file": str(self.authority)}
        for role in ("scheduler", "worker", "client"):
            files |= {f"tls_{role}_cert": str(self.certificate), f"tls_{role}_key": str(self.key)}
        return distributed().Security(require_encryption=True, **files)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a client. As in Dask, the authority must match and the name of the host need
        not."""
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.authority)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.certificate, self.key)
        return context


def new_certificates(folder: Path, days: int = DAYS) -> Certificates:
    """Make an authority, a certificate and its key in `folder`, which only its owner may read.

    The authority's own key is thrown away: nobody can make further certificates of this cluster.

    Raises
    ------
    BadValue
        `folder` holds something already, or cannot be written.
    NotAvailable
        The extra `cluster` is not installed.
    """
    if not 1 <= days <= MOST_DAYS:
        raise BadValue(f"certificates are valid for 1 to {MOST_DAYS} days, not {days}")
    made = make_certificate("twinnet cluster authority", "twinnet cluster member", days, REMEDY)
    contents = dict(zip(_FILES, (made.authority, made.certificate, made.key), strict=True))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.iterdir()):
            raise BadValue(
                f"{folder} is not empty; certificates are not written over others",
                "name another folder, or remove this one when its cluster has ended",
            )
        folder.chmod(0o700)
        for name, content in contents.items():
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
    except OSError as error:
        raise BadValue(f"certificates cannot be written to {folder}: {error.strerror or error}") from None
    return Certificates(folder)


def read_certificates(folder: Path | None = None) -> Certificates:
    """Look whether `folder` holds the certificates of a cluster that can be used now.

    Raises
    ------
    BadFile
        A file is missing or cannot be read, others may read the key, the files do not belong together, or the
        certificate has expired or is not valid yet.
    """
    found = Certificates(folder if folder is not None else default_folder())
    for name in _FILES:
        path = found.folder / name
        try:
            read_given(path, _LARGEST_BYTES)
        except OSError as error:
            raise BadFile(f"the certificate file {path} cannot be read: {reason(error)}", _MAKE) from None
    if found.key.stat().st_mode & 0o077:
        raise BadFile(f"others may read the key {found.key}", f"chmod 600 {found.key}")
    try:
        found.context()
    except (ssl.SSLError, ValueError) as error:
        raise BadFile(f"the certificates in {found.folder} cannot be used: {error}", _MAKE) from None
    for path in (found.authority, found.certificate):
        _check_dates(path)
    return found


def _check_dates(path: Path) -> None:
    try:
        x509 = importlib.import_module("cryptography.x509")
    except ImportError as error:
        raise NotAvailable(f"certificates need {error.name}, which is not installed", REMEDY) from None
    try:
        certificate = x509.load_pem_x509_certificate(read_given(path, _LARGEST_BYTES))
    except ValueError as error:
        raise BadFile(f"{path} is no certificate: {error}", _MAKE) from None
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise BadFile(
            f"{path} has expired on {certificate.not_valid_after_utc:%Y-%m-%d}",
            "make new ones with `twinnet cluster new` in another folder, and copy it to each machine",
        )
    if now < certificate.not_valid_before_utc:
        raise BadFile(
            f"{path} is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC, and here it is"
            f" {now:%Y-%m-%d %H:%M} UTC",
            "set this machine's clock",
        )
