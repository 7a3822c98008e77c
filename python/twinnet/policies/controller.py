"""The controller of a policy: it installs the rules when a switch joins, and changes them while the network runs."""

from __future__ import annotations

from collections.abc import Mapping

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import PacketIn
from twinnet.errors import BadPolicy
from twinnet.policies.compiled import CompiledPolicy, Meter, Rule, SwitchRules
from twinnet.policies.on_demand import RulesOnDemand

__all__ = ["PolicyController"]


class PolicyController(Controller):
    """Installs the rules of a compiled policy.

    A switch gets its meters and rules in one batch that a barrier ends, and then sends no frame to the controller. If
    the policy is to be installed reactively, the batch is without the rules of classes. The first packet of a class
    comes to the controller, which installs the rules that it needs, waits for the switch to have them, and then has the
    switch take the packet through its tables.

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
        self._on_demand: dict[str, RulesOnDemand] = {}

    def on_start(self) -> None:
        """Begin with the policy that it was made for."""
        self.compiled = self._first
        self.installed = set()
        self._on_demand = {}

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Give the switch its meters and rules."""
        wanted = self.compiled.switches.get(switch.name)
        if wanted is None:
            raise BadPolicy(f"the policy was compiled for a network without the switch {switch.name}")
        if self.compiled.policy.installation == "reactive":
            self._on_demand[switch.name] = RulesOnDemand(wanted)
            wanted = self._on_demand[switch.name].present
        switch.delete()
        for meter in wanted.meters:
            switch.add_meter(meter.number, meter.rate_kbps, meter.burst_kbit)
        for rule in wanted.rules:
            switch.install(rule.line)
        switch.barrier(lambda: self.installed.add(switch.name))

    def on_packet_in(self, event: PacketIn) -> bool:
        """Install the rules that the packet needs, where the policy is reactive, and send it on when they are there."""
        on_demand = self._on_demand.get(event.switch.name)
        if on_demand is None or not on_demand.asks(event.cookie):
            return False
        before = on_demand.present
        on_demand.meet(event.cookie, event.data)

        def confirmed() -> None:
            on_demand.confirm()
            event.switch.send(event.out("table"))

        self._replace_rules(event.switch, before, on_demand.present)
        event.switch.barrier(confirmed)
        return True

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
            old, new = before.switches[name], to.switches[name]
            known = self._on_demand.pop(name, None)
            if known is not None:
                old = known.present
            if to.policy.installation == "reactive":
                self._on_demand[name] = RulesOnDemand(new, known)
                new = self._on_demand[name].present
            self._change_switch(switch, old, new)

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
        self._replace_rules(switch, old, new)
        for number in old_meters.keys() - new_meters.keys():
            switch.delete_meter(number)
        switch.barrier(lambda: self.installed.add(switch.name))

    def _replace_rules(self, switch: ConnectedSwitch, old: SwitchRules, new: SwitchRules) -> None:
        """Have the switch get what is only in `new`, the highest priority first, and lose what is only in `old`."""
        kept = {rule.cookie for rule in old.rules} & {rule.cookie for rule in new.rules}
        # Of overlapping rules the one that has the packets of both comes first.
        for rule in sorted(new.rules, key=lambda rule: -rule.priority):
            if rule.cookie not in kept:
                switch.install(rule.line)
        replaced = {_place(rule) for rule in new.rules}
        for rule in old.rules:
            # A rule of the same table, priority and match has been replaced by its successor.
            if rule.cookie not in kept and _place(rule) not in replaced:
                switch.delete(f"cookie={rule.cookie:#x}/-1")


def _by_number(rules: SwitchRules) -> Mapping[int, Meter]:
    return {meter.number: meter for meter in rules.meters}


def _place(rule: Rule) -> str:
    return rule.text.partition("actions=")[0]
