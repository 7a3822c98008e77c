"""Controllers in the picture: each with a line to its switches, and which of them are connected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.live.watch import LabWatch, network_record
from twinnet.network.network import Network

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NOBODY = "tcp:127.0.0.1:1"


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


def controlled() -> Network:
    """Two switches with a controller in this process; a third with one that nobody is."""
    net = tn.templates.linear(3)
    net.switches["s3"].controllers = [NOBODY]
    net.controller(tn.control.LearningSwitch)
    return net


def test_the_switches_of_each_controller_are_told_and_which_are_connected() -> None:
    net = tn.templates.linear(3)
    net.controller(tn.control.LearningSwitch)
    with net.simulate(name=f"controlled-{os.getpid()}") as lab:
        lab.wait_for_controllers()
        ((target, switches),) = ((one["target"], one["switches"]) for one in network_record(lab)["controllers"])
        assert target and switches == ["s1", "s2", "s3"]
        watch = LabWatch(lab)
        watch.look()
        lab.run_until(f"{lab.now_ps() + 10**12} ps")
        seen = watch.look()
    assert seen is not None and seen["controllers"] == [[True, True, True]]


def test_without_controllers_nothing_is_told_of_them() -> None:
    with tn.templates.single(2).simulate(name=f"uncontrolled-{os.getpid()}") as lab:
        assert network_record(lab)["controllers"] == []
        watch = LabWatch(lab)
        watch.look()
        lab.run_until(f"{lab.now_ps() + 10**12} ps")
        assert "controllers" not in (watch.look() or {})


@needs_a_lab
@needs_a_browser
def test_controllers_are_seen_with_their_state_and_can_be_left_out(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    out = tmp_path / "controlled.html"
    with controlled().emulate() as lab:
        live = lab.live(out=out)
        page = opened(browser, live.address, faults)
        # The one of two switches stands to the left of that of the third.
        nodes = page.locator(".node.controller")
        expect(nodes.locator(".note").first).to_have_text("2 of 2 connected")
        expect(nodes.locator(".note").last).to_have_text("0 of 1 connected")
        assert nodes.last.get_attribute("aria-label") == f"controller {NOBODY}: 0 of 1 connected"
        assert (page.locator(".control").count(), page.locator(".control.apart").count()) == (3, 1)
        # Both stand above the switches, in the picture.
        top = float((page.locator("#picture").get_attribute("viewBox") or "").split()[1])
        page.get_by_role("button", name="Hide controllers").click()
        assert nodes.first.is_hidden() and page.locator(".control").first.is_hidden()
        assert float((page.locator("#picture").get_attribute("viewBox") or "").split()[1]) == top + 120
        page.get_by_role("button", name="Show controllers").click()
        assert nodes.first.is_visible() and page.locator("#controls").inner_text() == "Hide controllers"
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Picture as SVG").click()
        waiting.value.save_as(tmp_path / "picture.svg")
        assert NOBODY in (tmp_path / "picture.svg").read_text()
        page.context.close()
        live.stop()
    recorded = opened(browser, out.as_uri(), faults)
    expect(recorded.locator(".node.controller .note").last).to_have_text("0 of 1 connected")
    recorded.context.close()
    assert faults == []


@needs_a_lab
@needs_a_browser
def test_a_network_without_controllers_has_no_button_for_them(browser: Browser) -> None:
    faults: list[str] = []
    with tn.templates.single(2).emulate() as lab, lab.live() as live:
        page = opened(browser, live.address, faults)
        assert page.is_hidden("#controls") and page.locator(".node.controller").count() == 0
        page.context.close()
    assert faults == []
