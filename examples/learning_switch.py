"""A learning switch on os-ken, OpenFlow 1.3: the program of an external controller.

Usage: learning_switch.py PORT [KEY CERTIFICATE CA]. With files it speaks TLS.
"""

import sys
from typing import ClassVar

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.base.app_manager import AppManager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3


class LearningSwitch(app_manager.OSKenApp):
    OFP_VERSIONS: ClassVar = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stations = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def joined(self, event):
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, 128)]
        self.add(datapath, 0, parser.OFPMatch(), actions)

    def add(self, datapath, priority, match, actions, buffer_id=None):
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
        buffer = ofproto.OFP_NO_BUFFER if buffer_id is None else buffer_id
        datapath.send_msg(
            parser.OFPFlowMod(
                datapath=datapath, buffer_id=buffer, priority=priority, match=match, instructions=instructions
            )
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath = message.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        in_port = message.match["in_port"]
        header = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        stations = self.stations.setdefault(datapath.id, {})
        stations[header.src] = in_port
        out_port = stations.get(header.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofproto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_dst=header.dst, eth_src=header.src)
            if message.buffer_id != ofproto.OFP_NO_BUFFER:
                self.add(datapath, 1, match, actions, message.buffer_id)
                return
            self.add(datapath, 1, match, actions)
        data = message.data if message.buffer_id == ofproto.OFP_NO_BUFFER else None
        datapath.send_msg(
            parser.OFPPacketOut(
                datapath=datapath, buffer_id=message.buffer_id, in_port=in_port, actions=actions, data=data
            )
        )


if __name__ == "__main__":
    port, *files = sys.argv[1:]
    arguments = ["--ofp-ssl-listen-port" if files else "--ofp-tcp-listen-port", port]
    for option, file in zip(("--ctl-privkey", "--ctl-cert", "--ca-certs"), files, strict=False):
        arguments += [option, file]
    cfg.CONF([*arguments, "--ofp-listen-host", "127.0.0.1"], project="os_ken")
    AppManager.run_apps([__name__, "os_ken.controller.ofp_handler"])
