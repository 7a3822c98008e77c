"""Every example runs and prints what its page shows."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from kernels_here import a_kernel_is_here
from labs_here import needs_a_lab
from module_files import module_in

DOCS = Path(__file__).parents[2] / "docs"
MAKER = module_in(DOCS / "examples_page.py")
IN_GUESTS = ("bbr_by_iperf3", "faucet_in_virtual_time", "seed_of_a_bug", "web_bufferbloat")
IN_GYMNASIUM = ("learned_congestion_control", "learned_routing")
IN_LABS = ("learning_tree", "open_vswitch", "routing_daemons", "two_labs", "real_interface")


def test_every_file_of_the_folder_has_a_page_or_belongs_to_one() -> None:
    files = {path.stem for path in MAKER.EXAMPLES.glob("*.*")}
    assert files - {"learning_switch"} == set(MAKER.ORDER) == {page.stem for page in MAKER.PAGES.glob("*.md")}


def test_the_gallery_leads_to_every_example() -> None:
    assert MAKER.GALLERY.read_text(encoding="utf-8") == MAKER.gallery(), "write it anew: python docs/examples_page.py"


def _own_namespaces() -> bool:
    if any(shutil.which(tool) is None for tool in ("unshare", "nsenter", "ip")):
        return False
    return (
        subprocess.run(["unshare", "--user", "--map-root-user", "--net", "true"], capture_output=True).returncode == 0
    )


def _marks(name: str) -> list[pytest.MarkDecorator]:
    # Routing daemons agree in their own time.
    long = [pytest.mark.long] if name == "routing_daemons" else []
    return [needs_a_lab, *long] if name in IN_LABS else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in MAKER.ORDER])
def test_an_example_prints_what_its_page_shows(name: str) -> None:
    if name in IN_GUESTS and not a_kernel_is_here():
        pytest.skip("there is no kernel for programs on the virtual clock")
    if name == "bbr_by_iperf3" and shutil.which("iperf3") is None:
        pytest.skip("iperf3 is not installed")
    if name == "web_bufferbloat" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    if name == "faucet_in_virtual_time" and not (os.environ.get("TWINNET_FAUCET") or shutil.which("faucet")):
        pytest.skip("Faucet is not installed")
    if name == "open_vswitch" and shutil.which("ovs-vswitchd") is None:
        pytest.skip("ovs-vswitchd is not installed: apt install openvswitch-switch")
    if name == "routing_daemons" and not Path("/usr/lib/frr/zebra").exists():
        pytest.skip("FRR is not installed: apt install frr")
    if name == "routing_daemons" and os.geteuid() != 0:
        pytest.skip("needs root: FRR sets its groups")
    if name == "learning_tree" and importlib.util.find_spec("os_ken") is None:
        pytest.skip("os-ken is not installed: pip install os-ken")
    if name in IN_GYMNASIUM and importlib.util.find_spec("gymnasium") is None:
        pytest.skip("gymnasium is not installed: pip install gymnasium")
    if name == "real_interface" and not _own_namespaces():
        pytest.skip("needs user namespaces, and the tools unshare, nsenter and ip (apt install util-linux iproute2)")
    page = (MAKER.PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert f"```text\n{MAKER.output_of(name)}\n```" in page, "write it anew: python docs/examples_page.py"
