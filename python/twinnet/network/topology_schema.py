"""The schema of network files: pydantic models whose checks are those of :class:`twinnet.Network`.

Study files use :class:`NetworkModel` for their network too.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    model_serializer,
    model_validator,
)

from twinnet.control.choice import app_factory
from twinnet.control.controller_settings import CONTROLLER_DEFAULTS, ControllerOptions
from twinnet.errors import BadValue
from twinnet.network import addressing, templates
from twinnet.network.checks import MOST_FABRIC_THREADS, checked_fabric_threads
from twinnet.network.flow_syntax import checked_flow
from twinnet.network.host_settings import HOST_DEFAULTS, HostOptions, ModelOptions
from twinnet.network.link_settings import LINK_DEFAULTS, DirectionSettings, LineChange, LineOptions
from twinnet.network.machines import checked_command, checked_target
from twinnet.network.switch_settings import SWITCH_DEFAULTS, DatapathNumber, SwitchOptions
from twinnet.network.tunnels import TUNNEL_DEFAULTS, TUNNEL_KINDS, tunnel_from_mapping
from twinnet.ranges import moment_ps
from twinnet.schema_texts import attribute_texts

__all__ = [
    "ControllerModel",
    "FlowText",
    "HostModel",
    "InterfaceModel",
    "LinkModel",
    "MachineModel",
    "MomentText",
    "NetworkModel",
    "RouterModel",
    "SwitchModel",
]

_NUMBER = r"^\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)\s*"


def _checked(check: Callable[[Any, str], Any], what: str) -> BeforeValidator:
    def keep(value: Any) -> Any:
        check(value, what)
        return value

    return BeforeValidator(keep)


def _text(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


_DURATION = _text(_NUMBER + "(ps|ns|us|µs|ms|s|sec|min|h)$", "5 ms")
MomentText = Annotated[str, _checked(moment_ps, "time"), _DURATION]
"""Text such as ``2 s``, after the start."""
FlowText = Annotated[str, AfterValidator(checked_flow)]
"""A flow in ``ovs-ofctl`` syntax."""


def _flow_of_kind(flow: str, info: ValidationInfo) -> str:
    """Open vSwitch knows more of flows than we do: it checks its own when the lab starts."""
    return flow if info.data.get("kind") == "ovs" else checked_flow(flow)


SwitchFlowText = Annotated[str, AfterValidator(_flow_of_kind)]
"""A flow of a switch, whose kind stands before its flows."""


def _name(value: Any) -> Any:
    return addressing.checked_name(value)


NodeName = Annotated[str, BeforeValidator(_name)]


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


class RouteModel(_Strict):
    """A route of a host or router."""

    to: Annotated[str, Field(description="A destination prefix, or default.")]
    via: Annotated[str, Field(description="The next hop's address.")]

    @model_validator(mode="after")
    def _readable(self) -> Any:
        addressing.next_hop(self.via, addressing.network_prefix(self.to))
        return self


def _fields_of(settings: type, defaults: Mapping[str, Any], but: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a model of the keys of a ``TypedDict``, without those that files write in another way."""
    hints = typing.get_type_hints(settings, include_extras=True)
    needed = getattr(settings, "__required_keys__", frozenset[str]())

    def field_of(name: str) -> Any:
        def tell(schema: dict[str, Any]) -> None:
            schema.setdefault("description", attribute_texts(settings)[name])

        return Field(... if name in needed else defaults.get(name), json_schema_extra=tell)

    return {name: (hint, field_of(name)) for name, hint in hints.items() if name not in but}


_Forwarding = create_model(
    "_Forwarding", __base__=_Strict, **_fields_of(HostOptions, HOST_DEFAULTS, ("routes", "sysctls"))
)


class RouterModel(_Forwarding):
    """A host that forwards.

    Attributes
    ----------
    routes
        Its routes besides those of its interfaces.
    sysctls
        Kernel settings under `net.`, such as `net.ipv4.tcp_congestion_control: cubic`.
    """

    routes: Annotated[list[RouteModel], Field(default_factory=list)]
    sysctls: Annotated[dict[str, str | int], Field(default_factory=dict)]


class HostModel(RouterModel):
    """A host.

    Attributes
    ----------
    routes
        Its routes besides those of its interfaces.
    sysctls
        Kernel settings under `net.`, such as `net.ipv4.tcp_congestion_control: cubic`.
    ip, ip6
        The address of its first interface with prefix length; `false` for none. Host number N gets 10.0.0.N/8 and
        fd00::N/64 where nothing is given.
    mac
        The MAC of its first interface; default: 00:00:00:00:00:0N.
    gateway
        The next hop of its default route.
    """

    ip: str | Literal[False] | None = None
    ip6: str | Literal[False] | None = None
    mac: str | None = None
    gateway: str | None = None


_Machine = create_model("_Machine", __base__=_Strict, **_fields_of(ModelOptions, HOST_DEFAULTS))


class MachineModel(_Machine):
    """A physical machine as a host: an agent on it runs the apps on the real clock.

    Attributes
    ----------
    ssh
        How the machine is reached: a host or `user@host` of your SSH configuration.
    interface
        Its interface to the network that is measured.
    address
        The addresses of that interface, with prefix lengths.
    command
        The command that starts twinnet there.
    """

    ssh: Annotated[str, AfterValidator(checked_target)]
    interface: Annotated[str, AfterValidator(addressing.checked_real_interface)]
    address: str | list[str]
    command: Annotated[str, AfterValidator(checked_command)] = "twinnet"


_Switch = create_model("_Switch", __base__=_Strict, **_fields_of(SwitchOptions, SWITCH_DEFAULTS, ("flows",)))


class SwitchModel(_Switch):
    """A switch.

    Attributes
    ----------
    dpid
        Its datapath identifier; default: its number.
    flows
        Flows in the syntax of `ovs-ofctl`, which it has from the start.
    """

    dpid: DatapathNumber | None = None
    # What a flow may say depends on the kind, which stands before it.
    flows: Annotated[list[SwitchFlowText], Field(default_factory=list)]


class InterfaceModel(_Strict):
    """An existing interface of the machine.

    Attributes
    ----------
    interface
        Its name, such as `eth1`.
    """

    interface: Annotated[str, AfterValidator(addressing.checked_real_interface)]


_Controller = create_model("_Controller", __base__=_Strict, **_fields_of(ControllerOptions, CONTROLLER_DEFAULTS))


class ControllerModel(_Controller):
    """The controller of the switches that name none: a program (connect, run), or one in the lab's process (app).

    Attributes
    ----------
    connect
        Where the program listens, such as `tcp:127.0.0.1:6653`.
    app
        One in the lab's process: `learning`, or `module:name` of your own.
    """

    connect: str | None = None
    app: str | None = None

    @model_validator(mode="after")
    def _program_or_app(self) -> Any:
        if self.app is not None and (self.connect is not None or self._given()["run"] is not None):
            raise BadValue("the controller is an app and a program", "give app, or connect and run")
        return self

    def settings(self) -> dict[str, Any]:
        """Return the arguments for :meth:`Network.controller`; raises `BadValue` if the value is not an app."""
        place = self.connect if self.app is None else app_factory(self.app)
        return {"connect": place} | self._given()

    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ControllerOptions.__annotations__}


_Direction = create_model("_Direction", __base__=_Strict, **_fields_of(DirectionSettings, LINK_DEFAULTS))


class DirectionModel(_Direction):
    """Settings of one direction of a link."""


_Gre = create_model("_Gre", __base__=_Strict, **_fields_of(TUNNEL_KINDS["gre"], TUNNEL_DEFAULTS))
_Vxlan = create_model("_Vxlan", __base__=_Strict, **_fields_of(TUNNEL_KINDS["vxlan"], TUNNEL_DEFAULTS))


class GreModel(_Gre):
    """Ethernet in GRE."""


class VxlanModel(_Vxlan):
    """Ethernet in VXLAN."""


class TunnelModel(_Strict):
    """The tunnel that carries a link's frames over an underlay: one of the kinds.

    Attributes
    ----------
    gre
        Ethernet in GRE (RFC 2784, RFC 2890).
    vxlan
        Ethernet in VXLAN (RFC 7348).
    """

    gre: GreModel | None = None
    vxlan: VxlanModel | None = None

    @model_validator(mode="after")
    def _one(self) -> Any:
        tunnel_from_mapping(self.model_dump(exclude_unset=True))
        return self


_LineOptions = create_model(
    "_LineOptions", __base__=_Strict, **_fields_of(LineOptions, LINK_DEFAULTS, ("a_to_b", "b_to_a"))
)


class _LineModel(_LineOptions):
    a_to_b: DirectionModel | None = None
    b_to_a: DirectionModel | None = None


class LinkModel(_LineModel):
    """A link.

    Attributes
    ----------
    between
        The names of its two ends, the first and the second.
    name
        Its name, by which studies can mean it and its queues.
    tunnel
        The tunnel that carries its frames over an underlay, whose settings the rate, the queue and the impairments
        then are.
    a_to_b, b_to_a
        Settings of the direction from the first or the second end, over the others.
    """

    between: Annotated[list[str], Field(min_length=2, max_length=2)]
    name: NodeName | None = None
    tunnel: TunnelModel | None = None


class FarTunnelModel(_LineModel):
    """A tunnel to another speaker at a new port of a node, and the settings of the link between.

    Attributes
    ----------
    through
        The kind of tunnel and its settings.
    name
        The name of the far end; default: one that is made.
    a_to_b, b_to_a
        Settings of the direction from the node or from the far end, over the others.
    """

    at: Annotated[str, Field(description="A switch or host.")]
    through: TunnelModel
    name: NodeName | None = None


_LineChange = create_model("_LineChange", __base__=_Strict, **_fields_of(LineChange, LINK_DEFAULTS))


class LineChangeModel(_LineChange):
    """Settings of a link that may change while it runs."""

    @model_serializer(mode="plain")
    def _what_changes(self) -> dict[str, Any]:
        """What is not given stays as it is, so nothing else is given."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class ChangeModel(_Strict):
    """A change of a link after the start.

    Attributes
    ----------
    at
        When, after the start, such as `10 s`.
    link
        The names of the link's ends.
    direction
        `both`; `ab`: from the first of these ends; `ba`: from the second.
    set
        The settings that change.
    """

    at: MomentText
    link: Annotated[list[str], Field(min_length=2, max_length=2)]
    direction: Literal["both", "ab", "ba"] = "both"
    set: LineChangeModel


class PlaceModel(_Strict):
    """A machine that carries a part of the network.

    Attributes
    ----------
    ssh
        How the machine is reached: a host or `user@host` of your SSH configuration.
    address
        Its address in the network between the machines; default: that which SSH uses.
    command
        The command that starts twinnet there.
    """

    ssh: Annotated[str, AfterValidator(checked_target)]
    address: str | None = None
    command: Annotated[str, AfterValidator(checked_command)] = "twinnet"


def _template(text: str) -> str:
    if not templates.is_template(text):
        templates.from_text(text)
    return text


class NetworkModel(_Strict):
    """A network: a template, or nodes and links, or a template and what is added to it.

    Attributes
    ----------
    template
        A template with its numbers, such as `tree,2,3`.
    link_defaults
        Settings of all links that do not give their own.
    seed
        Of all random numbers of the network.
    ip6
        Whether hosts and routers speak IPv6; `false`: IPv4 alone.
    hosts, routers, switches
        Its nodes by their names.
    machines
        Physical machines as hosts.
    interfaces
        Existing interfaces of this machine as nodes.
    controller
        The controller of the switches that name none.
    links
        What joins the nodes.
    tunnels
        Tunnels to speakers outside.
    schedule
        Changes of links after the start.
    """

    template: Annotated[str, AfterValidator(_template)] | None = None
    link_defaults: DirectionModel | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 64, strict=True)] = 1
    ip6: Annotated[bool, Field(strict=True)] = True
    fabric_threads: Annotated[
        Literal["auto"] | int,
        BeforeValidator(checked_fabric_threads),
        WithJsonSchema(
            {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MOST_FABRIC_THREADS}]}
        ),
        Field(description="The number of threads that move the network on the wall clock."),
    ] = "auto"
    hosts: dict[NodeName, HostModel | None] = {}
    machines: dict[NodeName, MachineModel] = {}
    routers: dict[NodeName, RouterModel | None] = {}
    switches: dict[NodeName, SwitchModel | None] = {}
    interfaces: dict[NodeName, InterfaceModel | None] = {}
    controller: ControllerModel | None = None
    links: list[LinkModel] = []
    tunnels: list[FarTunnelModel] = []
    schedule: list[ChangeModel] = []
    on: Annotated[
        dict[NodeName, Annotated[str, AfterValidator(checked_target)] | PlaceModel],
        Field(description="The machine of each switch, for a network on several machines."),
    ] = {}

    @model_validator(mode="after")
    def _something(self) -> Any:
        if self.template is None and not (self.hosts or self.machines or self.routers or self.switches):
            raise BadValue("the network has no nodes", "give hosts, switches and links, or a template")
        return self
