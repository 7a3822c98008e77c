"""Files that a control channel over TLS needs: private key, certificate and CA certificate, by the names of
``ovs-vsctl``."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from twinnet.errors import BadValue, NotAvailable
from twinnet.given_files import read_given
from twinnet.schema_texts import docstring_texts
from twinnet.settings import Setting

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

__all__ = ["Tls", "TlsFiles", "accepting", "check_tls", "checked_tls", "connecting"]

_MOST_BYTES = 1_000_000
_GIVE = "give tls=Tls(private_key=..., certificate=..., ca_cert=...), or use tcp: and ptcp:"
_REMEDY = (
    "give PEM files: a private key without a passphrase, its certificate, and the CA certificate of the other side"
)


@dataclass(frozen=True)
class Tls:
    """The identity of a switch on control channels over TLS, and the CA that it trusts. All are paths of PEM files.

    As with Open vSwitch the names in certificates do not matter: who has a certificate of the CA is trusted. TLS 1.2 is
    the least that is spoken.

    Parameters
    ----------
    private_key
        The switch's private key, without a passphrase.
    certificate
        The certificate of that key; those that lead to its CA may follow it.
    ca_cert
        The CA certificate that the other side's certificate must lead to, of controllers and of tools; ``None``: the
        other side is not verified.

    Raises
    ------
    BadValue
        When one is no path.

    Examples
    --------
    >>> Tls("s1-key.pem", "s1-cert.pem", ca_cert="ca.pem").ca_cert
    'ca.pem'
    """

    # What pydantic reads of a dataclass that it is to make of a mapping in a file.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    private_key: str | os.PathLike[str]
    certificate: str | os.PathLike[str]
    ca_cert: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("private_key", "certificate", "ca_cert"):
            given: object = getattr(self, name)
            if given is None and name == "ca_cert":
                continue
            if not isinstance(given, (str, os.PathLike)) or not str(given):  # pyright: ignore[reportUnknownArgumentType]
                raise BadValue(f"the {name} of TLS is {given!r}", "give the path of a PEM file")

    def to_spec(self) -> dict[str, str]:
        """Return the form of the lab protocol."""
        spec = {"private_key": os.fspath(self.private_key), "certificate": os.fspath(self.certificate)}
        if self.ca_cert is not None:
            spec["ca_cert"] = os.fspath(self.ca_cert)
        return spec

    def connecting(self) -> ssl.SSLContext:
        """Return the context of connections that the switch makes.

        Raises
        ------
        NotAvailable
            When a file cannot be read, or the key and the certificate do not belong together.
        """
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def accepting(self) -> ssl.SSLContext:
        """Return the context of connections that are made to the switch; raises as :meth:`connecting`."""
        return self._context(ssl.PROTOCOL_TLS_SERVER)

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE if self.ca_cert is None else ssl.CERT_REQUIRED
        _readable("private key", self.private_key)
        _readable("certificate", self.certificate)
        try:
            # Without a password a key that has one would be asked for at the terminal.
            context.load_cert_chain(self.certificate, self.private_key, password="")
        except (ssl.SSLError, ValueError) as error:
            raise _refused(self._mistake(error)) from None
        if self.ca_cert is not None:
            _readable("CA certificate", self.ca_cert)
            try:
                context.load_verify_locations(self.ca_cert)
            except ssl.SSLError:
                raise _refused(f"there is no certificate in the CA certificate {os.fspath(self.ca_cert)!r}") from None
        return context

    def _mistake(self, error: Exception) -> str:
        key, certificate = repr(os.fspath(self.private_key)), repr(os.fspath(self.certificate))
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            return f"the private key {key} does not belong to the certificate {certificate}"
        if b"-----BEGIN CERTIFICATE-----" not in read_given(self.certificate, _MOST_BYTES):
            return f"there is no certificate in {certificate}"
        text = read_given(self.private_key, _MOST_BYTES)
        if b"ENCRYPTED" in text:
            return f"the private key {key} is encrypted"
        if b"PRIVATE KEY-----" not in text:
            return f"there is no private key in {key}"
        return f"the private key {key} or the certificate {certificate} cannot be used: {error}"


@dataclass(frozen=True)
class _PemFiles(Setting):
    """The paths of PEM files, which files write as a mapping."""

    def read(self, value: object, what: str) -> dict[str, str]:
        """Return the paths in the form of the protocol."""
        if not isinstance(value, Tls):
            raise self.error(f"the tls of {what} is {value!r}", _GIVE)
        return value.to_spec()

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a mapping."""
        path = {"type": "string", "minLength": 1}
        texts = docstring_texts(Tls)
        paths = {name: path | {"description": texts[name]} for name in ("private_key", "certificate", "ca_cert")}
        return {
            "type": "object",
            "description": "Paths of PEM files for control channels over TLS, seen from where the program was started.",
            "properties": paths,
            "required": ["private_key", "certificate"],
            "additionalProperties": False,
        }

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(source)


TlsFiles = Annotated[Tls, _PemFiles()]
"""The files that control channels over TLS need."""


def _refused(message: str) -> NotAvailable:
    return NotAvailable(f"TLS: {message}", _REMEDY)


def _readable(what: str, path: str | os.PathLike[str]) -> None:
    try:
        read_given(path, _MOST_BYTES)
    except OSError as error:
        raise _refused(f"the {what} {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None


def _tls_of(switch: Mapping[str, Any]) -> Tls | None:
    """Return what `switch` (of the lab protocol) has for TLS."""
    given = switch.get("tls")
    return Tls(**given) if given is not None else None


def connecting(switch: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return the context of connections that `switch` (of the lab protocol) makes; as :meth:`Tls.connecting`."""
    tls = _tls_of(switch)
    return tls.connecting() if tls is not None else None


def accepting(switch: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return the context of connections that are made to `switch` (of the lab protocol) over TLS; ``None``: it listens
    without TLS."""
    tls = _tls_of(switch)
    return tls.accepting() if tls is not None and str(switch.get("listen")).startswith("pssl:") else None


def checked_tls(name: str, places: Sequence[str], tls: object) -> Tls | None:
    """Return `tls` of the switch `name`, whose controllers and place to listen are `places`, without looking at files.

    Raises
    ------
    BadValue
        When it is something else, or one of `places` needs it and there is none.
    """
    if tls is not None and not isinstance(tls, Tls):
        raise BadValue(f"the tls of {name} is {tls!r}", _GIVE)
    over_tls = [place for place in places if place.startswith(("ssl:", "pssl:"))]
    if tls is None and over_tls:
        raise BadValue(f"{name} has no key and certificate for {over_tls[0]}", _GIVE)
    return tls


def check_tls(nodes: Sequence[Mapping[str, Any]]) -> None:
    """See that all switches among `nodes` (of the lab protocol) have what they need for TLS.

    Raises
    ------
    BadValue
        When a switch has nothing for it.
    NotAvailable
        When its files are not what they must be.
    """
    checked: set[Tls] = set()
    for node in nodes:
        tls = checked_tls(node["name"], (*node.get("controllers", ()), node.get("listen") or ""), _tls_of(node))
        # Switches mostly share theirs.
        if tls is not None and tls not in checked:
            tls.connecting()
            checked.add(tls)
