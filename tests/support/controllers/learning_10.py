"""A learning switch on os-ken, OpenFlow 1.0: the program of an external controller. Usage: learning_10.py PORT."""

import sys
from typing import ClassVar

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.base.app_manager import AppManager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.mac import haddr_to_bin
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0


class LearningSwitch(app_manager.OSKenApp):
    OFP_VERSIONS: ClassVar = [ofproto_v1_0.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stations = {}

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath = message.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        header = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        stations = self.stations.setdefault(datapath.id, {})
        stations[header.src] = message.in_port
        out_port = stations.get(header.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofproto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=message.in_port, dl_dst=haddr_to_bin(header.dst))
            datapath.send_msg(
                parser.OFPFlowMod(
                    datapath=datapath,
                    match=match,
                    cookie=0,
                    command=ofproto.OFPFC_ADD,
                    idle_timeout=0,
                    hard_timeout=0,
                    priority=ofproto.OFP_DEFAULT_PRIORITY,
                    flags=ofproto.OFPFF_SEND_FLOW_REM,
                    actions=actions,
                )
            )
        data = message.data if message.buffer_id == ofproto.OFP_NO_BUFFER else None
        datapath.send_msg(
            parser.OFPPacketOut(
                datapath=datapath, buffer_id=message.buffer_id, in_port=message.in_port, actions=actions, data=data
            )
        )


if __name__ == "__main__":
    cfg.CONF(["--ofp-tcp-listen-port", sys.argv[1], "--ofp-listen-host", "127.0.0.1"], project="os_ken")
    AppManager.run_apps([__name__, "os_ken.controller.ofp_handler"])
