"""Two labs joined by a VXLAN tunnel: a host of one lab pings a host of the other."""

import twinnet as tn


def network(number: int) -> tn.Network:
    """Lab 1 or lab 2; on two machines, `local` and `remote` are the machines' addresses."""
    here, there = ("127.0.0.1", "127.0.0.2") if number == 1 else ("127.0.0.2", "127.0.0.1")
    net = tn.Network(seed=number)
    s1 = net.switch("s1")
    net.link(net.host(f"h{number}", ip=f"10.0.0.{number}/24", mac=f"02:00:00:00:00:0{number}"), s1, rate="100 Mbit")
    net.tunnel(s1, tn.vxlan(42, local=here, remote=there), delay="5 ms")
    return net


if __name__ == "__main__":
    with network(1).emulate() as first, network(2).emulate():
        pinged = first["h1"].run("ping -c 2 -i 0.2 10.0.0.2").stdout
        print(next(line for line in pinged.splitlines() if "received" in line).split(",")[1].strip())
        sent = first.tunnels()[0]
        print(f"the tunnel leads to {sent['remote']} and takes packets of up to {sent['inner_mtu']} B")
