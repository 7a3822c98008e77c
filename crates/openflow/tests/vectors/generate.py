"""Writes os-ken.txt: OpenFlow messages as os-ken 4.2 serialises them, or packs and parses them again.

Run with a Python that has os-ken installed: ``python generate.py > os-ken.txt``. Each line is the version, a
name and the bytes. The lines that begin with a name in ``packet_data`` are the captures that os-ken carries with its
own tests, many of them made by Open vSwitch.
"""

import os
import struct
from glob import glob

import os_ken
from os_ken.ofproto import nicira_ext
from os_ken.ofproto import ofproto_v1_0 as o10
from os_ken.ofproto import ofproto_v1_0_parser as p10
from os_ken.ofproto import ofproto_v1_3 as o13
from os_ken.ofproto import ofproto_v1_3_parser as p13
from os_ken.ofproto.nx_match import ClsRule

XID = 0x01020304


class Datapath:
    """What os-ken's messages ask of a connection."""

    def __init__(self, ofproto, parser):
        self.ofproto, self.ofproto_parser = ofproto, parser


D10, D13 = Datapath(o10, p10), Datapath(o13, p13)


def emit(version, name, message):
    """Prints what os-ken serialises."""
    message.set_xid(XID)
    message.serialize()
    print(version, name, bytes(message.buf).hex())


def parsed(name, kind, body):
    """Prints a message of OpenFlow 1.0 that a switch sends, once os-ken's parser has read all of it."""
    header = struct.pack(o10.OFP_HEADER_PACK_STR, 1, kind, 8 + len(body), XID)
    message = header + body
    p10.msg_parser(D10, 1, kind, len(message), XID, message).to_jsondict()
    print("1.0", name, message.hex())


def captures():
    """os-ken's own captures."""
    folder = os.path.join(os.path.dirname(os_ken.__file__), "tests", "packet_data")
    for version, directory in (("1.0", "of10"), ("1.3", "of13")):
        for path in sorted(glob(os.path.join(folder, directory, "*.packet"))):
            with open(path, "rb") as file:
                print(version, os.path.basename(path).removesuffix(".packet"), file.read().hex())


FIELDS = [
    {"in_port": 7, "in_phy_port": 8},
    {"metadata": (0x1200, 0xFF00), "tunnel_id": (0x55, 0xFF)},
    {"eth_dst": ("01:00:00:00:00:00", "01:00:00:00:00:00"),
     "eth_src": "02:00:00:00:00:01", "vlan_vid": (0x1000, 0x1000)},
    {"vlan_vid": 0x1064, "vlan_pcp": 5, "eth_type": 0x0800},
    {"eth_type": 0x0800, "ip_dscp": 46, "ip_ecn": 2, "ip_proto": 6, "tcp_src": 1024, "tcp_dst": 80},
    {"eth_type": 0x0800, "ip_proto": 17, "ipv4_src": ("10.1.0.0", "255.255.0.0"),
     "ipv4_dst": "10.2.0.1", "udp_src": 53, "udp_dst": 54},
    {"eth_type": 0x0800, "ip_proto": 132, "sctp_src": 5, "sctp_dst": 6},
    {"eth_type": 0x0800, "ip_proto": 1, "icmpv4_type": 8, "icmpv4_code": 1},
    {
        "eth_type": 0x0806,
        "arp_op": 2,
        "arp_spa": ("10.0.0.0", "255.0.0.0"),
        "arp_tpa": "10.0.0.1",
        "arp_sha": "02:00:00:00:00:02",
        "arp_tha": ("02:00:00:00:00:00", "ff:ff:ff:00:00:00"),
    },
    {
        "eth_type": 0x86DD,
        "ip_proto": 58,
        "ipv6_src": ("fd00::", "ffff::"),
        "ipv6_dst": "fd00::2",
        "ipv6_flabel": (0x12300, 0xFFF00),
        "icmpv6_type": 135,
        "icmpv6_code": 0,
        "ipv6_nd_target": "fd00::3",
        "ipv6_nd_sll": "02:00:00:00:00:03",
    },
    {"eth_type": 0x86DD, "ip_proto": 58, "icmpv6_type": 136,
     "ipv6_nd_tll": "02:00:00:00:00:04", "ipv6_exthdr": (0x40, 0x1C0)},
    {"eth_type": 0x8847, "mpls_label": 0xABCDE, "mpls_tc": 3, "mpls_bos": 1},
    {"eth_type": 0x88E7, "pbb_isid": (0x123400, 0xFFFF00)},
]


def matches():
    """A flow for every set of fields, and one with every action and instruction."""
    for index, fields in enumerate(FIELDS):
        emit("1.3", f"match-{index}", p13.OFPFlowMod(D13, cookie=index, priority=9, match=p13.OFPMatch(**fields)))
    settable = [
        {name: value[0] if isinstance(value, tuple) else value}
        for fields in FIELDS
        for name, value in fields.items()
        if name not in ("in_port", "in_phy_port", "metadata", "ipv6_exthdr")
    ]
    actions = [p13.OFPActionSetField(**field) for field in settable]
    actions += [
        p13.OFPActionOutput(3, 128),
        p13.OFPActionCopyTtlOut(),
        p13.OFPActionCopyTtlIn(),
        p13.OFPActionSetMplsTtl(9),
        p13.OFPActionDecMplsTtl(),
        p13.OFPActionPushVlan(0x88A8),
        p13.OFPActionPopVlan(),
        p13.OFPActionPushMpls(0x8847),
        p13.OFPActionPopMpls(0x0800),
        p13.OFPActionSetQueue(4),
        p13.OFPActionGroup(5),
        p13.OFPActionSetNwTtl(64),
        p13.OFPActionDecNwTtl(),
        p13.OFPActionPushPbb(0x88E7),
        p13.OFPActionPopPbb(),
        p13.OFPActionExperimenterUnknown(0x4F4E4600, b"01234567"),
    ]
    instructions = [
        p13.OFPInstructionMeter(6),
        p13.OFPInstructionActions(o13.OFPIT_APPLY_ACTIONS, actions),
        p13.OFPInstructionActions(o13.OFPIT_CLEAR_ACTIONS, []),
        p13.OFPInstructionActions(o13.OFPIT_WRITE_ACTIONS, [p13.OFPActionOutput(1)]),
        p13.OFPInstructionWriteMetadata(0x10, 0xF0),
        p13.OFPInstructionGotoTable(7),
    ]
    emit("1.3", "instructions", p13.OFPFlowMod(D13, table_id=2, match=p13.OFPMatch(), instructions=instructions))


def nicira_actions():
    """Nicira's actions, in OpenFlow 1.3; os-ken writes its stack actions two bytes short, so those are in the
    captures only."""
    learn = p13.NXActionLearn(
        table_id=10,
        specs=[
            p13.NXFlowSpecMatch(src=("vlan_vid", 0), dst=("vlan_vid", 0), n_bits=12),
            p13.NXFlowSpecMatch(src=("eth_src_nxm", 0), dst=("eth_dst_nxm", 0), n_bits=48),
            p13.NXFlowSpecMatch(src=0x0800, dst=("eth_type_nxm", 0), n_bits=16),
            p13.NXFlowSpecLoad(src=0, dst=("vlan_vid", 0), n_bits=12),
            p13.NXFlowSpecOutput(src=("in_port_nxm", 0), dst="", n_bits=16),
        ],
        idle_timeout=10,
        hard_timeout=20,
        priority=5,
        cookie=6,
        fin_idle_timeout=3,
        fin_hard_timeout=4,
    )
    actions = {
        "set-queue": p13.NXActionSetQueue(3),
        "pop-queue": p13.NXActionPopQueue(),
        "reg-load": p13.NXActionRegLoad(nicira_ext.ofs_nbits(4, 31), "reg0", 0x1234),
        "reg-load2": p13.NXActionRegLoad2("tun_ipv4_dst", "192.168.10.0", "255.255.255.0"),
        "note": p13.NXActionNote([0xA1, 0xB2, 0, 0, 0, 0]),
        "set-tunnel": p13.NXActionSetTunnel(0xA),
        "set-tunnel64": p13.NXActionSetTunnel64(0xA00000000),
        "reg-move": p13.NXActionRegMove("reg0", "reg1", 16, 8, 4),
        "resubmit": p13.NXActionResubmit(8080),
        "resubmit-table": p13.NXActionResubmitTable(8080, 10),
        "output-reg": p13.NXActionOutputReg(nicira_ext.ofs_nbits(0, 15), "reg3", 0xFFFF),
        "learn": learn,
        "exit": p13.NXActionExit(),
        "dec-ttl": p13.NXActionDecTtl(),
        "dec-ttl-cnt-ids": p13.NXActionDecTtlCntIds([1, 2, 3]),
        "controller": p13.NXActionController(1024, 1, o13.OFPR_INVALID_TTL),
        "push-mpls": p13.NXActionPushMpls(0x8847),
        "pop-mpls": p13.NXActionPopMpls(0x0800),
        "set-mpls-ttl": p13.NXActionSetMplsTtl(128),
        "dec-mpls-ttl": p13.NXActionDecMplsTtl(),
        "set-mpls-label": p13.NXActionSetMplsLabel(16),
        "set-mpls-tc": p13.NXActionSetMplsTc(7),
        "fin-timeout": p13.NXActionFinTimeout(30, 60),
        "conjunction": p13.NXActionConjunction(0, 2, 100),
        "multipath": p13.NXActionMultipath(
            nicira_ext.NX_HASH_FIELDS_SYMMETRIC_L4, 1024, nicira_ext.NX_MP_ALG_HRW, 5, 0,
            nicira_ext.ofs_nbits(4, 31), "reg0"
        ),
        "bundle": p13.NXActionBundle(
            nicira_ext.NX_BD_ALG_HRW, nicira_ext.NX_HASH_FIELDS_ETH_SRC, 0, nicira_ext.NXM_OF_IN_PORT, 2, 0, 0, [2, 3]
        ),
        "bundle-load": p13.NXActionBundleLoad(
            nicira_ext.NX_BD_ALG_HRW, 0, 0, nicira_ext.NXM_OF_IN_PORT, 3, nicira_ext.ofs_nbits(4, 31), "reg0", [2, 3, 4]
        ),
        "ct-clear": p13.NXActionCTClear(),
        "output-trunc": p13.NXActionOutputTrunc(8080, 1024),
        "ct": p13.NXActionCT(1, "reg0", nicira_ext.ofs_nbits(4, 31), 4, 0, []),
    }
    for name, action in actions.items():
        emit("1.3", f"nicira-{name}", p13.OFPPacketOut(D13, o13.OFP_NO_BUFFER, 1, [action], b""))


def rule():
    """A match in Nicira's fields."""
    match = ClsRule()
    match.set_in_port(3)
    match.set_dl_type(0x0800)
    match.set_nw_dst_masked(0x0A000000, 0xFF000000)
    match.set_reg(2, 0x77)
    match.set_tun_id(0x99)
    return match


def nicira_messages():
    """Nicira's messages, in OpenFlow 1.0."""
    output = [p10.OFPActionOutput(2)]
    messages = {
        "set-flow-format": p10.NXTSetFlowFormat(D10, nicira_ext.NXFF_NXM),
        "flow-mod": p10.NXTFlowMod(D10, 5, o10.OFPFC_ADD, priority=7, rule=rule(), actions=output),
        "role-request": p10.NXTRoleRequest(D10, nicira_ext.NX_ROLE_MASTER),
        "flow-mod-table-id": p10.NXTFlowModTableId(D10, 1),
        "set-packet-in-format": p10.NXTSetPacketInFormat(D10, nicira_ext.NXPIF_NXM),
        "flow-age": p10.NXTFlowAge(D10),
        "set-async-config": p10.NXTSetAsyncConfig(D10, [1, 2], [3, 4], [5, 6]),
        "set-controller-id": p10.NXTSetControllerId(D10, 9),
        "flow-stats-request": p10.NXFlowStatsRequest(D10, 0, o10.OFPP_NONE, 0xFF, rule()),
        "aggregate-stats-request": p10.NXAggregateStatsRequest(D10, 0, o10.OFPP_NONE, 0xFF, rule()),
    }
    for name, message in messages.items():
        emit("1.0", f"nicira-{name}", message)


def requests_of_1_0():
    """What a controller sends in OpenFlow 1.0."""
    match = p10.OFPMatch(in_port=1, dl_type=0x0800, nw_src="10.0.0.1", nw_dst="10.1.0.0", nw_dst_mask=16,
                         nw_proto=6, tp_dst=80)
    actions = [
        p10.OFPActionOutput(1, 64),
        p10.OFPActionVlanVid(5),
        p10.OFPActionVlanPcp(3),
        p10.OFPActionStripVlan(),
        p10.OFPActionSetDlSrc("02:00:00:00:00:01"),
        p10.OFPActionSetDlDst("02:00:00:00:00:02"),
        p10.OFPActionSetNwSrc("10.0.0.3"),
        p10.OFPActionSetNwDst("10.0.0.4"),
        p10.OFPActionSetNwTos(0xB8),
        p10.OFPActionSetTpSrc(1000),
        p10.OFPActionSetTpDst(2000),
        p10.OFPActionEnqueue(4, 1),
    ]
    flow = {"match": match, "cookie": 3, "command": o10.OFPFC_ADD, "idle_timeout": 5, "hard_timeout": 6, "priority": 7}
    messages = {
        "hello": p10.OFPHello(D10),
        "error": p10.OFPErrorMsg(D10, o10.OFPET_BAD_ACTION, o10.OFPBAC_BAD_QUEUE, b"01234567"),
        "echo-request": p10.OFPEchoRequest(D10, b"abc"),
        "echo-reply": p10.OFPEchoReply(D10, b"abc"),
        "features-request": p10.OFPFeaturesRequest(D10),
        "get-config-request": p10.OFPGetConfigRequest(D10),
        "set-config": p10.OFPSetConfig(D10, o10.OFPC_FRAG_DROP, 128),
        "packet-out": p10.OFPPacketOut(D10, o10.OFP_NO_BUFFER, 3, actions, b"frame"),
        "flow-mod": p10.OFPFlowMod(D10, flags=o10.OFPFF_SEND_FLOW_REM, actions=actions, **flow),
        "port-mod": p10.OFPPortMod(D10, 3, "02:00:00:00:00:05", o10.OFPPC_NO_FLOOD, o10.OFPPC_NO_FLOOD, 0),
        "barrier-request": p10.OFPBarrierRequest(D10),
        "queue-get-config-request": p10.OFPQueueGetConfigRequest(D10, 2),
        "desc-request": p10.OFPDescStatsRequest(D10, 0),
        "flow-stats-request": p10.OFPFlowStatsRequest(D10, 0, match, 0xFF, o10.OFPP_NONE),
        "aggregate-stats-request": p10.OFPAggregateStatsRequest(D10, 0, match, 0xFF, o10.OFPP_NONE),
        "table-stats-request": p10.OFPTableStatsRequest(D10, 0),
        "port-stats-request": p10.OFPPortStatsRequest(D10, 0, o10.OFPP_NONE),
        "queue-stats-request": p10.OFPQueueStatsRequest(D10, 0, o10.OFPP_ALL, o10.OFPQ_ALL),
        "vendor-stats-request": p10.OFPVendorStatsRequest(D10, 0, 0x1234, b"12345678"),
    }
    for name, message in messages.items():
        emit("1.0", name, message)


def replies_of_1_0():
    """What a switch sends in OpenFlow 1.0."""
    match = struct.pack(
        o10.OFP_MATCH_PACK_STR, 0x3FFFEE, 4, bytes(6), bytes(6), 0xFFFF, 0, 0x0800, 0, 6, 0x0A000001, 0x0A000002, 1, 2
    )
    action = struct.pack(o10.OFP_ACTION_OUTPUT_PACK_STR, 0, 8, 2, 0)
    port = struct.pack(o10.OFP_PHY_PORT_PACK_STR, 2, b"\2\0\0\0\0\7", b"eth1", 0x10, 0x200, 0x840, 0x40, 0x80, 0x100)

    def stats(kind, body):
        return struct.pack(o10.OFP_STATS_MSG_PACK_STR, kind, 0) + body

    flow_tail = struct.pack(o10.OFP_FLOW_STATS_1_PACK_STR, 10, 11, 12, 13, 14, 15, 16, 17)
    flow = struct.pack(o10.OFP_FLOW_STATS_0_PACK_STR, 4 + len(match + flow_tail + action), 1)
    flow = flow + match + flow_tail + action
    queue = struct.pack("!IHxx", 3, 24) + struct.pack(o10.OFP_QUEUE_PROP_HEADER_PACK_STR, 1, 16)
    queue += struct.pack("!H6x", 500)
    texts = struct.pack(o10.OFP_DESC_STATS_PACK_STR, b"maker", b"hardware", b"software", b"serial", b"datapath")
    removed = match + struct.pack("!QHBxIIH2xQQ", 5, 6, 1, 7, 8, 9, 10, 11)
    features = struct.pack(o10.OFP_SWITCH_FEATURES_PACK_STR, 0x1122, 256, 2, 0x87, 0xFFF)
    parsed("features-reply", 6, features + port + port)
    parsed("get-config-reply", 8, struct.pack("!HH", 1, 128))
    parsed("packet-in", 10, struct.pack(o10.OFP_PACKET_IN_PACK_STR, 9, 60, 3, 1) + b"frame")
    parsed("flow-removed", 11, removed)
    parsed("port-status", 12, struct.pack("!B7x", 2) + port)
    parsed("desc-reply", 17, stats(0, texts))
    parsed("flow-stats-reply", 17, stats(1, flow + flow))
    parsed("aggregate-stats-reply", 17, stats(2, struct.pack(o10.OFP_AGGREGATE_STATS_REPLY_PACK_STR, 1, 2, 3)))
    table = struct.pack(o10.OFP_TABLE_STATS_PACK_STR, 1, b"classifier", 0x3FFFFF, 1000, 10, 11, 12)
    parsed("table-stats-reply", 17, stats(3, table + table))
    parsed("port-stats-reply", 17, stats(4, struct.pack(o10.OFP_PORT_STATS_PACK_STR, 3, *range(1, 13))))
    parsed("queue-stats-reply", 17, stats(5, struct.pack(o10.OFP_QUEUE_STATS_PACK_STR, 3, 1, 2, 3, 4)))
    parsed("barrier-reply", 19, b"")
    parsed("queue-get-config-reply", 21, struct.pack(o10.OFP_QUEUE_GET_CONFIG_REPLY_PACK_STR, 3) + queue)


captures()
matches()
nicira_actions()
nicira_messages()
requests_of_1_0()
replies_of_1_0()
