"""The program that makes an image the root of its mount namespace and becomes a shell in it.

A container's node starts it in new namespaces: ``python -m twinnet.mininet.image_shell SPEC``, with a JSON object. What
it writes to the descriptor ``tell`` is why it failed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

from twinnet import _core

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Do it; return a status only when it failed."""
    spec: dict[str, Any] = json.loads(arguments[0])
    tell = int(spec["tell"])
    os.set_inheritable(tell, False)
    variables: dict[str, str] = {**spec["image"]["environment"], "PS1": chr(127)}
    try:
        _core.enter_image(json.dumps(spec["image"]), spec["scratch"])
        bash = ["bash", "--norc", "--noediting", "-is"] if shutil.which("bash", path=variables["PATH"]) else []
        command = [*(bash or ["sh", "-is"]), f"mininet:{spec['name']}"]
        os.execvpe(command[0], command, variables)
    except _core.CoreError as refused:
        os.write(tell, refused.args[1].encode())
    except OSError as refused:
        os.write(tell, f"{refused.strerror}: {refused.filename or spec['image']['root']}".encode())
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
