"""A bug that shows in few runs: real programs, tried with one seed after the other, and there again whenever you look.

The server counts what it is asked to add. The client asks again when no answer comes. If it was the answer that got
lost, the server counts twice. You need the kernel for programs in virtual time (`twinnet kernel show`).
"""

import itertools

import twinnet as tn

SERVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000))
count = 0
while True:
    said, client = s.recvfrom(100)
    count += said == b"add"
    s.sendto(str(count).encode(), client)
"""
CLIENT = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.2)
def ask(what):
    while True:
        s.sendto(what, (sys.argv[1], 5000))
        try:
            return s.recv(100)
        except TimeoutError:
            pass
for _ in range(5):
    ask(b"add")
print(int(ask(b"total")))
"""


def network() -> tn.Network:
    net = tn.Network()
    net.link(net.host("client"), net.host("server"), rate="10 Mbit", delay="5 ms", loss="1 %")
    return net


def run(seed: int) -> tuple[int, str]:
    with network().simulate(hosts="programs", seed=seed) as lab:
        lab["server"].popen(["python3", "-c", SERVER])
        lab.run_until("1 s")
        said = lab["client"].run(["python3", "-c", CLIENT, lab["server"].ip], check=True).stdout
        return int(said), lab.trace_hash


if __name__ == "__main__":
    for seed in itertools.count(1):
        total, trace = run(seed)
        if total != 5:
            break
    print(f"seed {seed}: the client adds 5 times, and the server counts {total}")
    print("again, frame by frame:", run(seed) == (total, trace))
