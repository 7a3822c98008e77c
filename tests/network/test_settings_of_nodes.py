"""The settings of hosts, switches, controllers and tunnels are one for the core, the Python API and files."""

from __future__ import annotations

import json
import typing
from typing import Any

import pytest
import twinnet as tn
from twinnet import _core
from twinnet.cli.switch_command import switch as switch_command
from twinnet.control.controller_settings import CONTROLLER_DEFAULTS, ControllerOptions
from twinnet.control.targets import PROTOCOLS
from twinnet.errors import BadValue
from twinnet.network.host_settings import HOST_DEFAULTS, HostOptions, ModelOptions
from twinnet.network.link_settings import LinkOptions
from twinnet.network.switch_settings import SWITCH_DEFAULTS, SwitchOptions, switch_fields
from twinnet.network.topology_file import parse_network
from twinnet.network.topology_schema import (
    ControllerModel,
    GreModel,
    HostModel,
    MachineModel,
    RouterModel,
    SwitchModel,
    VxlanModel,
)
from twinnet.network.tunnels import TUNNEL_DEFAULTS, TUNNEL_KINDS
from twinnet.network.vlans import MODES, MirrorPlace, VlanOptions
from twinnet.settings import Flag, Quantity, Setting, Whole, Word, settings_of

CORE: dict[str, dict[str, dict[str, dict[str, Any]]]] = json.loads(_core.vocabulary())
MODELS = {"gre": GreModel, "vxlan": VxlanModel}
IDENTIFIERS = {"gre": "key", "vxlan": "vni"}
LONGEST_TIME_PS = (1 << 63) - 1


def agree(setting: Setting, core: dict[str, Any]) -> None:
    """Unit, range and words of `setting` are those of the `core`; where its clock is the limit, within them."""
    match setting:
        case Quantity():
            assert core["unit"] == setting.unit == "ps"
            assert core["minimum"] == setting.least
            assert setting.most <= core.get("maximum", LONGEST_TIME_PS)
        case Whole():
            assert core["minimum"] == setting.least
            # An unsigned number of 32 bits is told without its maximum.
            assert core.get("maximum", (1 << 32) - 1) == setting.most
        case Flag():
            assert core["type"] == "boolean"
        case Word():
            assert set(setting.words) <= set(core["values"])
        case _:
            pytest.fail(f"{setting} is compared with nothing")


def full_switch() -> dict[str, Any]:
    """A switch with every setting, as the core is told of it."""
    net = tn.Network()
    net.switch(
        "s1",
        dpid=1,
        fail_mode="secure",
        flows=["actions=flood"],
        delay="1 us",
        controllers=["ssl:127.0.0.1"],
        control_delay="1 ms",
        listen="ptcp:6654",
        tls=tn.control.Tls("key.pem", "certificate.pem", "ca.pem"),
        protocols=["OpenFlow13"],
        mirrors=[{"to": {"vlan": 99}, "all": True}],
        spanning_tree=True,
    )
    return net.to_spec()["nodes"][0]


def test_a_switch_has_in_python_the_settings_that_it_has_in_the_core() -> None:
    core = CORE["switch"]["switch"]
    # Open vSwitch has no delay, so no switch has both a datapath of its own and a delay.
    assert full_switch().keys() - {"kind"} == core.keys() - {"datapath"}
    suffixed = {"delay": "delay_ps", "control_delay": "control_delay_ps"}
    told = {suffixed.get(name, name) for name in SwitchOptions.__annotations__}
    # The kind and Open vSwitch's datapath are one in the core, which has VLANs with the ports.
    assert "vlans" in CORE["switch"]["port"]
    assert told - {"kind", "vlans"} == core.keys() - {"name", "dpid", "ports"}
    assert CORE["switch"]["vlans"].keys() == VlanOptions.__annotations__.keys()
    assert tuple(CORE["switch"]["vlans"]["mode"]["values"]) == MODES
    assert CORE["switch"]["mirror"].keys() == full_switch()["mirrors"][0].keys()
    assert CORE["switch"]["mirror_to"].keys() == MirrorPlace.__annotations__.keys()
    assert CORE["switch"]["tls"].keys() == full_switch()["tls"].keys()


def test_a_switch_has_the_defaults_units_and_words_of_the_core() -> None:
    core, settings = CORE["switch"]["switch"], settings_of(SwitchOptions)
    for name in ("delay", "control_delay", "fail_mode"):
        agree(settings[name], core[settings[name].key(name)])
    assert core["fail_mode"]["values"] == ["standalone", "secure"]
    assert core["datapath"]["values"] == ["own", *typing.cast("Word", settings["datapath"]).words]
    assert core["protocols"]["items"]["values"] == list(PROTOCOLS)
    net = tn.Network()
    net.switch("s1")
    [told] = net.to_spec()["nodes"]
    for name in ("fail_mode", "delay_ps", "flows", "ports"):
        assert core[name]["default"] == told[name]
    assert core["protocols"]["default"] == SWITCH_DEFAULTS.get("protocols")


def test_the_number_of_a_port_is_one_that_the_core_allows() -> None:
    setting = typing.cast("Whole", settings_of(LinkOptions)["port_a"])
    core = CORE["switch"]["port"]["number"]
    # OpenFlow 1.0 has numbers of 16 bits, and a switch may speak both versions.
    assert core["minimum"] == setting.least
    assert setting.most <= core["maximum"]


def test_a_switch_is_the_same_with_no_settings_as_object_by_call_and_from_a_file() -> None:
    net = tn.Network()
    plain = tn.Switch(net, "s1", dpid=1)
    for name, value in switch_fields("s1", {}).items():
        assert getattr(plain, name) == value, name
    net.switch("s1", 1)
    assert net.to_spec() == parse_network("switches: {s1: {dpid: 1}}").to_spec()
    assert set(SwitchModel.model_fields) == set(SwitchOptions.__annotations__) | {"dpid"}


def test_the_switch_command_knows_the_words_of_the_settings() -> None:
    choices = {one.name: getattr(one.type, "choices", None) for one in switch_command.params}
    assert tuple(choices["protocols"] or ()) == PROTOCOLS
    assert tuple(choices["fail_mode"] or ()) == typing.cast("Word", settings_of(SwitchOptions)["fail_mode"]).words


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("fail_mode: safe", "fail_mode is 'safe'; allowed are 'standalone' and 'secure'"),
        ("protocols: [OpenFlow14]", "allowed are OpenFlow10 and OpenFlow13"),
        ("protocols: []", "allowed are OpenFlow10 and OpenFlow13"),
        ("dpid: 0", "whole numbers from 1 to"),
        ("dpid: x", "not hexadecimal"),
        ("controllers: 'tcp:127.0.0.1'", "the controllers of the switch are not a list"),
        ("controllers: ['127.0.0.1']", "names no controller"),
        ("delay: 2 h", "out of range"),
    ],
)
def test_a_wrong_setting_of_a_switch_in_a_file_is_told_at_its_place(setting: str, message: str) -> None:
    with pytest.raises(tn.UsageError, match=rf"<text>:1.*switches\.s1\.\w+.*{message}"):
        parse_network(f"switches: {{s1: {{{setting}}}}}")


def test_a_host_has_in_python_the_settings_that_it_has_in_the_core() -> None:
    net = tn.Network()
    own: Any = {"image": "i.tar", "volumes": ["a:/a"], "processors": 2}
    host = net.host("h1", gateway="10.0.0.9", processing="1 us", interrupt_delay="1 us", sysctls={"net.a": 1}, **own)
    net.link(host, net.switch("s1"))
    told, core = net.to_spec()["nodes"][0], CORE["host"]
    assert told.keys() - {"kind"} == core["host"].keys()
    assert told["ports"][0].keys() == core["port"].keys()
    assert told["routes"][0].keys() == core["route"].keys()
    assert told["processing"].keys() == core["processing"].keys()
    assert told["coalescing"].keys() == core["coalescing"].keys()
    assert told["image"].keys() == core["image"].keys()
    assert told["image"]["volumes"][0].keys() == core["volume"].keys()
    assert told["limits"].keys() == core["limits"].keys()


def test_a_host_has_the_defaults_units_and_ranges_of_the_core() -> None:
    core, settings = CORE["host"], settings_of(HostOptions)
    agree(settings["processing"], core["processing"]["delay_ps"])
    agree(settings["interrupt_delay"], core["coalescing"]["delay_ps"])
    agree(settings["interrupt_frames"], core["coalescing"]["frames"])
    agree(settings["model"], core["host"]["model"])
    assert core["host"]["model"]["default"] == HOST_DEFAULTS.get("model")
    [told] = one_host().to_spec()["nodes"]
    for name, field in core["host"].items():
        if not field["required"]:
            assert told[name] == field.get("default"), name


def one_host() -> tn.Network:
    """A network of one host without settings."""
    net = tn.Network()
    net.host("h1")
    return net


def test_files_have_the_settings_of_hosts() -> None:
    assert set(RouterModel.model_fields) == set(HostOptions.__annotations__)
    assert set(HostModel.model_fields) == set(HostOptions.__annotations__) | {"ip", "ip6", "mac", "gateway"}
    assert set(MachineModel.model_fields) == set(ModelOptions.__annotations__) | {
        "ssh",
        "interface",
        "address",
        "command",
    }


@pytest.mark.parametrize("kind", ["gre", "vxlan"])
def test_a_tunnel_has_the_settings_defaults_and_ranges_of_the_core(kind: str) -> None:
    settings, far, near = settings_of(TUNNEL_KINDS[kind]), CORE["tunnel"]["end"], CORE["tunnel"][kind]
    made = tn.gre(5) if kind == "gre" else tn.vxlan(5)
    assert made.to_spec().keys() - {"kind"} == near.keys()
    assert settings.keys() <= near.keys() | far.keys()
    for name, setting in settings.items():
        core = near[name] if name in near else far[name]
        if name == "mtu":
            low, high = core["minimum"], core["maximum"]
            assert (setting.read(low, name), setting.read(high, name)) == (low, high)
            for refused in (low - 1, high + 1):
                with pytest.raises(BadValue):
                    setting.read(refused, name)
            assert core["default"] == made.underlay_mtu
        elif name not in ("remote", "local"):
            agree(setting, core)
            assert core.get("default") == TUNNEL_DEFAULTS.get(name)
    assert MODELS[kind].model_fields.keys() == settings.keys()
    assert MODELS[kind].model_fields[IDENTIFIERS[kind]].is_required() == near[IDENTIFIERS[kind]]["required"]


def test_the_end_of_a_tunnel_to_another_speaker_is_told_as_the_core_reads_it() -> None:
    net = tn.Network()
    net.tunnel(net.host("h1"), tn.vxlan(5, remote="192.0.2.2", port=5000))
    told = net.to_spec()["nodes"][1]
    assert told.keys() - {"kind"} == CORE["tunnel"]["end"].keys()
    assert told["ports"][0].keys() == CORE["tunnel"]["port"].keys()


def test_a_controller_has_the_same_settings_and_defaults_by_call_and_in_a_file() -> None:
    assert set(ControllerModel.model_fields) == set(ControllerOptions.__annotations__) | {"connect", "app"}
    by_call, from_file = tn.Network(), parse_network("{hosts: {h1: }, controller: {}}")
    by_call.controller()
    assert by_call.controller_choice == from_file.controller_choice
    given = ControllerModel().model_dump()
    assert {name: given[name] for name in CONTROLLER_DEFAULTS} == CONTROLLER_DEFAULTS


def test_a_wait_out_of_range_is_told_at_its_place_in_a_file() -> None:
    with pytest.raises(tn.UsageError, match=r"controller\.quiet.*the quiet '2 h' is out of range; .*600 s"):
        parse_network("{hosts: {h1: }, controller: {quiet: 2 h}}")


@pytest.mark.parametrize("call", [tn.gre, tn.Network().switch, tn.Network().controller])
def test_a_setting_that_a_call_does_not_take_is_told(call: Any) -> None:
    with pytest.raises(BadValue, match="takes no 'colour'"):
        call(colour=1)
