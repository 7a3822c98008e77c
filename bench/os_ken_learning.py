"""A learning switch on os-ken that installs nothing, so that each frame comes to the controller and back.

Run as a program: ``os_ken_learning.py PORT``.
"""

# type: ignore  (os-ken has no types)

import sys
from typing import Any, ClassVar

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.base.app_manager import AppManager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3


class AskedForAll(app_manager.OSKenApp):
    OFP_VERSIONS: ClassVar = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stations: dict[str, int] = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def joined(self, event: Any) -> None:
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
        instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
        datapath.send_msg(
            parser.OFPFlowMod(datapath=datapath, priority=0, match=parser.OFPMatch(), instructions=instructions)
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event: Any) -> None:
        message = event.msg
        datapath = message.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        in_port = message.match["in_port"]
        header = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        self.stations[header.src] = in_port
        actions = [parser.OFPActionOutput(self.stations.get(header.dst, ofproto.OFPP_FLOOD))]
        datapath.send_msg(
            parser.OFPPacketOut(
                datapath=datapath,
                buffer_id=ofproto.OFP_NO_BUFFER,
                in_port=in_port,
                actions=actions,
                data=message.data,
            )
        )


if __name__ == "__main__":
    cfg.CONF(["--ofp-tcp-listen-port", sys.argv[1], "--ofp-listen-host", "127.0.0.1"], project="os_ken")
    AppManager.run_apps([__name__, "os_ken.controller.ofp_handler"])
