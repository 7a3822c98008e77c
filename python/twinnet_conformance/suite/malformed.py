"""Messages cut short or damaged: each is refused or obeyed, the connection goes on, and what it answers can be read."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

CUT = "Malformed messages: cut short"
DAMAGED = "Malformed messages: lengths inside"

_TCP = {"eth_type": 0x0800, "ip_proto": 6, "tcp_dst": 80}
_SAMPLES = {
    "flow-mod": of.flow_mod(_TCP, of.apply_actions(of.set_field("tcp_dst", 5), of.output(2)), of.goto_table(1)),
    "group-mod": of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(2)), of.bucket(of.output(3))),
    "meter-mod": of.meter_mod(1, of.KBPS, of.drop_band(100), of.remark_band(50)),
    "packet-out": of.packet_out(build(), of.output(2)),
    "port-mod": of.port_mod(1, bytes(6), 0, 0),
    "role request": of.role_request(of.EQUAL),
    "flow request": of.flow_request(conditions=_TCP),
    "asynchronous configuration": of.set_async((7, 7), (7, 7), (15, 15)),
}

for _name, _sample in _SAMPLES.items():

    @case("6.2", CUT, f"every beginning of a {_name}")
    def _(bench: Bench, sample: of.Message = _sample) -> None:
        for end in range(0, len(sample.body), 2 if len(sample.body) < 60 else 5):
            bench.send(sample._replace(body=sample.body[:end]))
        bench.barrier()
        bench.ask(of.Message(of.ECHO_REQUEST), of.ECHO_REPLY)

    @case("6.2", DAMAGED, f"a {_name} whose bytes are set to 0 and 255 one after the other")
    def _(bench: Bench, sample: of.Message = _sample) -> None:
        for at in range(len(sample.body)):
            for value in (0, 255):
                wrong = sample.body[:at] + bytes([value]) + sample.body[at + 1 :]
                bench.send(sample._replace(body=wrong))
        bench.barrier()
        bench.ask(of.Message(of.ECHO_REQUEST), of.ECHO_REPLY)


@case("7.1", CUT, "a message of less than eight bytes ends the connection, or is refused")
def _(bench: Bench) -> None:
    other = bench.controller()
    other.connection.send(bytes([4, 2, 0, 4, 0, 0, 0, 9]))
    other.collect(bench.target.patience_s)
    check(other.connection.closed or bool(other.take(of.ERROR)), "it is passed over")
    bench.ask(of.Message(of.ECHO_REQUEST), of.ECHO_REPLY)
