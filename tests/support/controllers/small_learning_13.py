"""A learning switch in one thread, without any library, OpenFlow 1.3.

Usage: small_learning_13.py PORT [MODE [KEY CERTIFICATE CA]].

With a mode that is not empty it misbehaves, from the first frame on that a switch sends it: `die`, `hang`, `nonsense`,
`stranger` (another protocol), `half` (a message), `flood` (echo requests without an end), `busy` (it computes on and
on), `trickle` (a byte a second of a message that does not end); `slow` greets two seconds late and is good otherwise.
With files it speaks TLS.
"""

import selectors
import socket
import ssl
import struct
import sys
import time

HEADER = struct.Struct("!BBHI")
HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY, PACKET_IN, PACKET_OUT, FLOW_MOD = (
    0,
    2,
    3,
    5,
    6,
    10,
    13,
    14,
)
CONTROLLER, FLOOD, ANY, NO_BUFFER = 0xFFFFFFFD, 0xFFFFFFFB, 0xFFFFFFFF, 0xFFFFFFFF


def output(port):
    return struct.pack("!HHIH6x", 0, 16, port, 0xFFFF)


def in_port_of(oxms):
    return struct.unpack_from("!I", oxms, oxms.index(b"\x80\x00\x00\x04") + 4)[0]


class Switch:
    def __init__(self, sock, mode):
        self.sock, self.mode, self.rest, self.stations = sock, mode, b"", {}
        if mode == "slow":
            time.sleep(2)
            self.mode = ""
        self.say(HELLO)

    def say(self, kind, body=b"", xid=0):
        self.sock.sendall(HEADER.pack(4, kind, HEADER.size + len(body), xid) + body)

    def add_flow(self, priority, oxms, actions):
        match = struct.pack("!HH", 1, 4 + len(oxms)) + oxms
        match += bytes(-len(match) % 8)
        instruction = struct.pack("!HH4x", 4, 8 + len(actions)) + actions
        fixed = struct.pack("!QQBBHHHIIIH2x", 0, 0, 0, 0, 0, 0, priority, NO_BUFFER, ANY, ANY, 0)
        self.say(FLOW_MOD, fixed + match + instruction)

    def hear(self, data):
        self.rest += data
        while len(self.rest) >= HEADER.size:
            _, kind, length, xid = HEADER.unpack_from(self.rest)
            if len(self.rest) < length:
                return
            body, self.rest = self.rest[HEADER.size : length], self.rest[length:]
            if kind == HELLO:
                self.say(FEATURES_REQUEST)
            elif kind == ECHO_REQUEST:
                self.say(ECHO_REPLY, body, xid)
            elif kind == FEATURES_REPLY:
                self.add_flow(0, b"", output(CONTROLLER))
            elif kind == PACKET_IN:
                self.packet_in(body)

    def packet_in(self, body):
        if self.mode:
            self.misbehave()
            return
        match_length = struct.unpack_from("!H", body, 18)[0]
        in_port = in_port_of(body[20 : 16 + match_length])
        frame = body[16 + (match_length + 7) // 8 * 8 + 2 :]
        dst, src = frame[:6], frame[6:12]
        self.stations[src] = in_port
        port = self.stations.get(dst, FLOOD)
        if port != FLOOD:
            oxms = struct.pack("!HBBI", 0x8000, 0, 4, in_port)
            oxms += struct.pack("!HBB", 0x8000, 3 << 1, 6) + dst + struct.pack("!HBB", 0x8000, 4 << 1, 6) + src
            self.add_flow(1, oxms, output(port))
        actions = output(port)
        self.say(PACKET_OUT, struct.pack("!IIH6x", NO_BUFFER, in_port, len(actions)) + actions + frame)

    def misbehave(self):
        if self.mode == "die":
            sys.exit("it was told to die")
        if self.mode == "hang":
            socket.create_server(("127.0.0.1", 0)).accept()
        if self.mode == "nonsense":
            self.sock.sendall(bytes(24))
        if self.mode == "stranger":
            self.sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        if self.mode == "half":
            self.sock.sendall(HEADER.pack(4, FLOW_MOD, 80, 0))
            socket.create_server(("127.0.0.1", 0)).accept()
        rest = HEADER.pack(4, FLOW_MOD, 65535, 0)
        while self.mode == "trickle":
            self.sock.sendall(rest)
            rest = b"\0"
            time.sleep(1)
        while self.mode == "busy":
            pass
        while self.mode == "flood":
            self.say(ECHO_REQUEST)


def tls(key, certificate, ca):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificate, key)
    return context


def main():
    mode = sys.argv[2] if len(sys.argv) > 2 else ""
    context = tls(*sys.argv[3:]) if len(sys.argv) > 3 else None
    selector = selectors.DefaultSelector()
    server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    selector.register(server, selectors.EVENT_READ)
    switches = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is server:
                sock, _ = server.accept()
                if context is not None:
                    sock = context.wrap_socket(sock, server_side=True)
                switches[sock] = Switch(sock, mode)
                selector.register(sock, selectors.EVENT_READ)
            elif data := key.fileobj.recv(65536):
                while context is not None and key.fileobj.pending():
                    data += key.fileobj.recv(65536)
                switches[key.fileobj].hear(data)
            else:
                selector.unregister(key.fileobj)
                del switches[key.fileobj]


main()
