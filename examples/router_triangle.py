"""A triangle of routers with static routes: traceroute shows the way; another route changes it."""

import twinnet as tn


def network(detour: bool) -> tn.Network:
    net = tn.Network()
    via = "10.13.0.2" if detour else "10.12.0.2"
    back = "10.23.0.2" if detour else "10.12.0.1"
    net.router("r1", routes=[("10.2.0.0/24", via)])
    net.router("r2", routes=[("10.1.0.0/24", back)])
    net.router("r3", routes=[("10.2.0.0/24", "10.23.0.1"), ("10.1.0.0/24", "10.13.0.1")])
    net.host("h1", ip="10.1.0.2/24", ip6=False, gateway="10.1.0.1")
    net.host("h2", ip="10.2.0.2/24", ip6=False, gateway="10.2.0.1")
    net.link("h1", "r1", address_b="10.1.0.1/24")
    net.link("h2", "r2", address_b="10.2.0.1/24")
    net.link("r1", "r2", delay="20 ms", address_a="10.12.0.1/30", address_b="10.12.0.2/30")
    net.link("r1", "r3", delay="2 ms", address_a="10.13.0.1/30", address_b="10.13.0.2/30")
    net.link("r2", "r3", delay="2 ms", address_a="10.23.0.1/30", address_b="10.23.0.2/30")
    return net


def round_trip_ms(detour: bool) -> float:
    with network(detour).simulate() as lab:
        ping = lab.start(tn.apps.ping("h1", "h2", count=3, interval="100 ms"))
        lab.wait([ping])
        return ping.report().rtt.min / 1e9


if __name__ == "__main__":
    print(f"over the direct line of 20 ms: {round_trip_ms(detour=False):.0f} ms there and back")
    print(f"over the third router, twice 2 ms: {round_trip_ms(detour=True):.0f} ms there and back")
