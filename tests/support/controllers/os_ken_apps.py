"""Runs ``osken-manager`` of an os-ken that still has its applications. Usage: os_ken_apps.py [OPTION ...] APP ..."""

from __future__ import annotations

import sys

import eventlet.wsgi

# os-ken imports a name that eventlet has no more, for the answer of its websockets.
eventlet.wsgi.ALREADY_HANDLED = object()

from os_ken.cmd import manager  # noqa: E402

sys.exit(manager.main())
