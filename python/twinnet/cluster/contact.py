"""The first word with a scheduler: whether it is there, is of the same cluster, and of the same version."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Any

from twinnet.cluster.address import Address
from twinnet.cluster.certificates import Certificates
from twinnet.cluster.engine import ClusterError, distributed
from twinnet.code_version import code_version

__all__ = ["STARTING_S", "VERSION_OP", "NobodyThere", "check_scheduler", "security_of", "wait_for_scheduler"]

VERSION_OP = "twinnet_version"
"""The request that a scheduler of twinnet answers with its version."""
STARTING_S = 5.0
"""A scheduler and a run are often started by one script: for so long a run waits for it."""
_PATIENCE_S = 10.0
_TRIES = 2
_TRY_AGAIN_S = 0.1


class NobodyThere(ClusterError):
    """No scheduler answers at the address; one may come later."""


def security_of(certificates: Certificates | None) -> Any:
    """Dask's settings for `certificates`; without them those of plain TCP."""
    return certificates.security() if certificates is not None else distributed().Security(require_encryption=False)


def check_scheduler(address: Address, certificates: Certificates | None) -> None:
    """Look whether a scheduler of this version is at `address`, before anything else is said to it.

    Raises
    ------
    NobodyThere
        The name is not known, or nobody answers.
    ClusterError
        Who answers does not speak TLS, has no certificate of this cluster or refuses ours, is no scheduler of twinnet,
        or is one of another version.
    """
    version = None
    for _ in range(_TRIES):
        # A scheduler that ends between the two is no stranger: whoever listens then is asked again.
        _shake_hands(address, certificates)
        version = asyncio.run(_version_of(str(address), certificates))
        if version is not None:
            break
    if version is None:
        raise ClusterError(f"what listens at {address} is no scheduler of twinnet", "start `twinnet scheduler` there")
    if version != (ours := code_version()):
        raise ClusterError(
            f"the scheduler at {address} is of twinnet {version}, and this is twinnet {ours}",
            "install one version on all machines, from one wheel or from one commit of the source",
        )


def wait_for_scheduler(address: Address, certificates: Certificates | None, patience_s: float = STARTING_S) -> None:
    """Do what `check_scheduler` does, but give a scheduler that was just started `patience_s` seconds to listen.

    Raises
    ------
    NobodyThere, ClusterError
        As `check_scheduler`.
    """
    until_s = time.monotonic() + patience_s
    while True:
        try:
            return check_scheduler(address, certificates)
        except NobodyThere:
            if time.monotonic() >= until_s:
                raise
        time.sleep(_TRY_AGAIN_S)


def _shake_hands(address: Address, certificates: Certificates | None) -> None:
    start = f"start it there: twinnet scheduler --at {address}"
    try:
        connection = socket.create_connection((address.host, address.port), timeout=_PATIENCE_S)
    except socket.gaierror as error:
        raise NobodyThere(f"the name {address.host!r} of the scheduler is not known: {error.strerror}") from None
    except OSError as error:
        raise NobodyThere(f"no scheduler answers at {address}: {error.strerror or error}", start) from None
    with connection:
        if certificates is None:
            return
        other = f"the one at {address} is of another cluster: its certificate is not signed by {certificates.authority}"
        copy = "copy the folder of `twinnet cluster new` from the scheduler's machine, and name it with --keys"
        try:
            with certificates.context().wrap_socket(connection, server_hostname=address.host) as secure:
                secure.settimeout(0.3)
                # In TLS 1.3 (RFC 8446, 4.4.2.4) a refusal of the client's certificate comes after its handshake.
                try:
                    secure.recv(1)
                except TimeoutError:
                    return
        except ssl.SSLCertVerificationError as error:
            if "expired" in error.verify_message or "not yet valid" in error.verify_message:
                raise ClusterError(
                    f"the certificate of the scheduler at {address} cannot be used: {error.verify_message}",
                    "see whether the clocks of both machines are right, or make new ones with `twinnet cluster new`",
                ) from None
            raise ClusterError(other, copy) from None
        except ssl.SSLError as error:
            if "ALERT" in (error.reason or ""):
                raise ClusterError(
                    f"the scheduler at {address} refuses our certificate: {error.reason}", copy
                ) from None
            raise ClusterError(f"what listens at {address} does not speak TLS: {error.reason}", start) from None
        except OSError as error:
            raise NobodyThere(f"the scheduler at {address} ended the connection: {error}", start) from None


async def _version_of(address: str, certificates: Certificates | None) -> str | None:
    arguments = security_of(certificates).get_connection_args("client")
    caller = distributed().rpc(address, connection_args=arguments, timeout=_PATIENCE_S)
    try:
        answer = await asyncio.wait_for(getattr(caller, VERSION_OP)(), _PATIENCE_S)
    except (OSError, TimeoutError, ValueError, AttributeError, TypeError):
        # The engine's errors of connections are `OSError`; an operation that is not known is the others.
        return None
    finally:
        await caller.close_rpc()
    return answer if isinstance(answer, str) else None
