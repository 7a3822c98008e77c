"""The controller of a policy: it installs the rules when a switch joins, and changes them while the network runs."""

from __future__ import annotations

from collections.abc import Mapping

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.errors import BadPolicy
from twinnet.policies.compiled import CompiledPolicy, Meter, Rule, SwitchRules

__all__ = ["PolicyController"]


class PolicyController(Controller):
    """Installs the rules of a compiled policy, proactively: no frame goes to the controller.

    A switch gets its meters and rules in one batch that a barrier ends.

    Parameters
    ----------
    compiled
        What is installed.

    Attributes
    ----------
    compiled
        What runs now.
    installed
        The switches that have confirmed all their rules.
    """

    def __init__(self, compiled: CompiledPolicy) -> None:
        self._first = compiled
        self.compiled: CompiledPolicy = compiled
        self.installed: set[str] = set()

    def on_start(self) -> None:
        """Begin with the policy that it was made for."""
        self.compiled = self._first
        self.installed = set()

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Give the switch its meters and rules."""
        wanted = self.compiled.switches.get(switch.name)
        if wanted is None:
            raise BadPolicy(f"the policy was compiled for a network without the switch {switch.name}")
        switch.delete()
        for meter in wanted.meters:
            switch.add_meter(meter.number, meter.rate_kbps, meter.burst_kbit)
        for rule in wanted.rules:
            switch.install(rule.line)
        switch.barrier(lambda: self.installed.add(switch.name))

    def change(self, to: CompiledPolicy) -> None:
        """Have the running policy become `to` in the present moment of the lab's time.

        `to` is compiled for the same network with ``previous`` being what runs, so that classes keep their queue
        numbers. Queues are replaced only where they differ, and what waits moves over; rules of unchanged classes are
        not touched, new ones are there before old ones go: no frame of a flow whose class did not change is dropped.
        """
        if to.switches.keys() != self.compiled.switches.keys():
            raise BadPolicy("the new policy was compiled for another network", "compile it for the one that runs")
        self.stage.call_at(self.stage.now_ps, lambda: self.change_now(to))

    def change_now(self, to: CompiledPolicy) -> None:
        """Make the change from within one of the controller's own calls."""
        before = self.compiled
        self.compiled = to
        for name, switch in self.switches.items():
            self._change_switch(switch, before.switches[name], to.switches[name])

    def _change_switch(self, switch: ConnectedSwitch, old: SwitchRules, new: SwitchRules) -> None:
        for number, queue in new.queues.items():
            if old.queues.get(number) != queue:
                self.set_queue(switch.name, number, queue)
        for number in old.queues.keys() - new.queues.keys():
            self.set_queue(switch.name, number, None)
        old_meters, new_meters = _by_number(old), _by_number(new)
        for number, meter in new_meters.items():
            if number not in old_meters:
                switch.add_meter(number, meter.rate_kbps, meter.burst_kbit)
            elif old_meters[number] != meter:
                switch.modify_meter(number, meter.rate_kbps, meter.burst_kbit)
        kept = {rule.cookie for rule in old.rules} & {rule.cookie for rule in new.rules}
        for rule in new.rules:
            if rule.cookie not in kept:
                switch.install(rule.line)
        replaced = {_place(rule) for rule in new.rules}
        for rule in old.rules:
            # A rule of the same table, priority and match has been replaced by its successor.
            if rule.cookie not in kept and _place(rule) not in replaced:
                switch.delete(f"cookie={rule.cookie:#x}/-1")
        for number in old_meters.keys() - new_meters.keys():
            switch.delete_meter(number)
        switch.barrier(lambda: self.installed.add(switch.name))


def _by_number(rules: SwitchRules) -> Mapping[int, Meter]:
    return {meter.number: meter for meter in rules.meters}


def _place(rule: Rule) -> str:
    return rule.text.partition("actions=")[0]
