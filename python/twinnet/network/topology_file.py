"""Networks from YAML files, with every mistake shown at its line and key before anything is built.

.. code-block:: yaml

    seed: 1
    link_defaults: {rate: 1 Gbit, delay: 50 us}
    switches: {s1: }
    hosts: {h1: , h2: {ip: 10.0.0.20/8}}
    links:
      - between: [h1, s1]
      - between: [s1, h2]
        rate: 10 Mbit
        queue_a: {kind: fifo, limit_frames: 50}
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twinnet.deliveries import DeliveryTrace, named_traces
from twinnet.errors import UsageError
from twinnet.network.network import Network
from twinnet.network.other_formats import refuse_other_format
from twinnet.schema_texts import with_texts
from twinnet.yaml_source import Document, Problem, SourceError, load_yaml, parse_yaml, validate

if TYPE_CHECKING:
    from twinnet.network.topology_schema import ChangeModel, FarTunnelModel, LinkModel, NetworkModel, SwitchModel

__all__ = ["build_network", "json_schema", "load_network", "parse_network"]

Place = tuple[str | int, ...]


def load_network(path: str | Path) -> Network:
    """Return the network that the YAML file at `path` describes.

    Raises
    ------
    SourceError
        With every mistake as ``file:line:column: key.path: message``.
    BadFile
        The file is of another format: its name and the way from it are told.
    """
    refuse_other_format(path)
    document = load_yaml(path)
    _put_traces_in(document, Path(path).parent)
    return _network(document)


def parse_network(text: str, file: str = "<text>") -> Network:
    """Return the network that the YAML `text` describes; messages call it `file`. Raises as :func:`load_network`."""
    document = parse_yaml(text, file)
    _put_traces_in(document, None)
    return _network(document)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of network files."""
    from twinnet.network.topology_schema import NetworkModel

    schema = cast(dict[str, Any], with_texts(NetworkModel.model_json_schema()))
    return schema | {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "twinnet network"}


def _put_traces_in(document: Document, folder: Path | None) -> None:
    """Put the moments of traces in the place of the names of their files, which stand in `folder`."""
    for fields, place in named_traces(document.data):
        key = str(place[-1])
        if folder is None:
            raise document.error(place, "a text has no files beside it; write the moments in milliseconds as a list")
        try:
            fields[key] = DeliveryTrace.read(folder / fields[key]).to_spec()
        except UsageError as error:
            raise document.error(place, str(error)) from None


def _network(document: Document) -> Network:
    from twinnet.network.topology_schema import NetworkModel

    try:
        model = validate(document, NetworkModel)
    except SourceError as error:
        raise _with_mistakes_between_parts(document, error) from None
    return build_network(model, document)


def _with_mistakes_between_parts(document: Document, error: SourceError) -> SourceError:
    from pydantic import ValidationError

    from twinnet.network.sound_parts import mistakes_between_parts
    from twinnet.network.topology_schema import NetworkModel

    try:
        NetworkModel.model_validate(document.data)
    except ValidationError as found:
        problems = [*error.problems, *mistakes_between_parts(document, document.data, found)]
        return SourceError(error.file, sorted(problems, key=lambda one: (one.line, one.column)))
    return error


def build_network(model: NetworkModel, document: Document, at: Place = ()) -> Network:
    """Return the network of a checked `model`, which stands in `document` at the key path `at`.

    Raises
    ------
    SourceError
        With every mistake that only shows when the parts are put together: missing nodes, duplicate links and
        addresses.
    """
    problems: list[Problem] = []

    def attempt(place: Place, make: Callable[[], Any]) -> bool:
        try:
            make()
        except UsageError as error:
            problems.append(document.problem((*at, *place), str(error), key=True))
            return False
        return True

    defaults = _given(model.link_defaults)
    try:
        net = _base(model, defaults)
    except UsageError as error:
        raise document.error((*at, "template"), str(error), key=True) from None
    # What a mistake leads to is no mistake of its own: links of a wrong node, changes of a wrong link are passed over.
    nodes: list[tuple[str, str, Callable[[], Any]]] = [
        *(("hosts", name, partial(net.host, name, **_node(one))) for name, one in model.hosts.items()),
        *(("machines", name, partial(net.machine, name, **_given(one))) for name, one in model.machines.items()),
        *(("routers", name, partial(net.router, name, **_node(one))) for name, one in model.routers.items()),
        *(("switches", name, partial(net.switch, name, **_switch(one))) for name, one in model.switches.items()),
        *(
            ("interfaces", name, partial(net.interface, one.interface if one is not None else name, name))
            for name, one in model.interfaces.items()
        ),
    ]
    wrong_nodes = {name for section, name, make in nodes if not attempt((section, name), make)}
    ends_of_wrong_links: set[str] = set()
    if (controller := model.controller) is not None:
        attempt(("controller",), lambda: net.controller(**controller.settings()))
    for index, link in enumerate(model.links):
        settings = defaults | _link(link)
        a, b = settings.pop("between")
        if wrong_nodes & {a, b} or not attempt(("links", index), partial(net.link, a, b, **settings)):
            ends_of_wrong_links |= {a, b}
    for index, tunnel in enumerate(model.tunnels):
        settings = defaults | _link(tunnel)
        at_node, through = settings.pop("at"), settings.pop("through")
        if at_node not in wrong_nodes:
            attempt(("tunnels", index), partial(net.tunnel, at_node, through, **settings))
    for index, change in enumerate(model.schedule):
        if not ends_of_wrong_links & {*change.link}:
            attempt(("schedule", index), partial(_schedule, net, change))
    if model.on and not wrong_nodes:
        places: dict[str, Any] = {name: one if isinstance(one, str) else _given(one) for name, one in model.on.items()}
        attempt(("on",), lambda: net.place(places))
    if problems:
        raise SourceError(document.file, problems)
    if not model.ip6:
        net.without_ip6()
    return net


def _schedule(net: Network, change: ChangeModel) -> None:
    a, b = change.link
    net.at(change.at).link(a, b).set(change.direction, **_given(change.set))


def _base(model: NetworkModel, defaults: dict[str, Any]) -> Network:
    from twinnet.network import templates

    net = templates.from_text(model.template, model.seed, **defaults) if model.template else Network(model.seed)
    net.fabric_threads = model.fabric_threads
    return net


def _given(model: Any) -> dict[str, Any]:
    """Return the fields that the file gives, models as mappings."""
    return model.model_dump(exclude_unset=True) if model is not None else {}


def _link(model: LinkModel | FarTunnelModel) -> dict[str, Any]:
    """Return the settings that the file gives, with queues as they are."""
    queues = {name: getattr(model, name) for name in ("queue", "queue_a", "queue_b")}
    return _given(model) | {name: queue for name, queue in queues.items() if queue is not None}


def _switch(model: SwitchModel | None) -> dict[str, Any]:
    fields = _given(model)
    # The object, not the mapping that stands for it in a file.
    if (tls := getattr(model, "tls", None)) is not None:
        fields["tls"] = tls
    return fields


def _node(model: Any) -> dict[str, Any]:
    fields = _given(model)
    if "routes" in fields:
        fields["routes"] = [(route["to"], route["via"]) for route in fields["routes"]]
    return fields
