"""The compiled part of the package, without which there is no lab."""

from __future__ import annotations

from twinnet.errors import NotAvailable

__all__ = ["require_compiled_part"]


def require_compiled_part() -> None:
    """Raise `NotAvailable` when ``twinnet._core`` cannot be loaded."""
    try:
        from twinnet import _core  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise NotAvailable(
            f"the compiled part of twinnet cannot be loaded ({error})", "install it again with: pip install ."
        ) from None
