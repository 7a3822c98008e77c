"""The package that stands apart from this one, ``twinnet-conformance``: the commands that need it ask for it here."""

from __future__ import annotations

import importlib.util
from importlib import metadata

import twinnet
from twinnet.errors import NotAvailable

__all__ = ["PACKAGE", "need_apart"]

PACKAGE = "twinnet-conformance"


def need_apart(module: str) -> None:
    """Make sure that `module` of the package can be imported, and belongs to this twinnet.

    Raises
    ------
    NotAvailable
        The package is not installed, or it is one of another version.
    """
    wanted = f"pip install {PACKAGE}=={twinnet.__version__}"
    if importlib.util.find_spec(module) is None:
        raise NotAvailable(f"this command is in the package {PACKAGE}, which is not installed", wanted)
    try:
        found = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return  # A source tree: both are of one commit.
    if found != twinnet.__version__:
        raise NotAvailable(f"{PACKAGE} is of version {found}, and twinnet of {twinnet.__version__}", wanted)
