"""The learning switch of the examples on os-ken, at an address that other machines reach. Usage: learning_at.py ADDRESS
PORT."""

import sys
from pathlib import Path

from os_ken import cfg
from os_ken.base.app_manager import AppManager

if __name__ == "__main__":
    address, port = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
    cfg.CONF(["--ofp-listen-host", address, "--ofp-tcp-listen-port", port], project="os_ken")
    AppManager.run_apps(["learning_switch", "os_ken.controller.ofp_handler"])
