"""Mininet's command ``mn``: a network from options, a test or the prompt."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from optparse import OptionParser, Values
from pathlib import Path
from typing import Any

from twinnet.mininet import cli as cli_module
from twinnet.mininet import names, virtual_time
from twinnet.mininet.clean import cleanup
from twinnet.mininet.inherited_settings import SETTINGS
from twinnet.mininet.link import Link, OVSLink, TCLink, TCULink
from twinnet.mininet.log import LEVELS, debug, error, info, lg, output, warn
from twinnet.mininet.net import VERSION, Mininet, MininetWithControlNet
from twinnet.mininet.node import (
    NOX,
    Controller,
    CPULimitedHost,
    DefaultController,
    Host,
    IVSSwitch,
    NullController,
    OVSBridge,
    OVSController,
    OVSSwitch,
    RemoteController,
    Ryu,
    UserSwitch,
)
from twinnet.mininet.nodelib import LinuxBridge
from twinnet.mininet.topo import LinearTopo, MinimalTopo, SingleSwitchReversedTopo, SingleSwitchTopo
from twinnet.mininet.topolib import TorusTopo, TreeTopo
from twinnet.mininet.util import buildTopo, customClass, specialClass, splitArgs

__all__ = ["main"]

TOPOS: dict[str, Any] = {
    "minimal": MinimalTopo,
    "linear": LinearTopo,
    "reversed": SingleSwitchReversedTopo,
    "single": SingleSwitchTopo,
    "tree": TreeTopo,
    "torus": TorusTopo,
}
SWITCHES: dict[str, Any] = {
    "user": UserSwitch,
    "ovs": OVSSwitch,
    "ovsbr": OVSBridge,
    "ovsk": OVSSwitch,
    "ivs": IVSSwitch,
    "lxbr": LinuxBridge,
    "default": OVSSwitch,
}
HOSTS: dict[str, Any] = {
    "proc": Host,
    "rt": specialClass(CPULimitedHost, defaults={"sched": "rt"}),
    "cfs": specialClass(CPULimitedHost, defaults={"sched": "cfs"}),
}
CONTROLLERS: dict[str, Any] = {
    "ref": Controller,
    "ovsc": OVSController,
    "nox": NOX,
    "remote": RemoteController,
    "ryu": Ryu,
    "default": DefaultController,
    "none": NullController,
}
LINKS: dict[str, Any] = {"default": Link, "tc": TCLink, "tcu": TCULink, "ovs": OVSLink}
_SPELLINGS: dict[str, Any] = {"pingall": "pingAll", "pingpair": "pingPair", "iperfudp": "iperfUdp"}


def _all_tests(net: Mininet) -> None:
    net.start()
    net.ping()
    net.iperf()


def _no_test(_net: Mininet) -> None:
    pass


def _iperf_udp(net: Mininet, **settings: Any) -> None:
    net.iperf(l4Type="UDP", **settings)


TESTS: dict[str, Any] = {
    "pingall": True,
    "pingpair": True,
    "iperf": True,
    "iperfUdp": _iperf_udp,
    "all": _all_tests,
    "none": _no_test,
    "build": _no_test,
}
_TABLES: dict[str, dict[str, Any]] = {
    "topos": TOPOS,
    "switches": SWITCHES,
    "hosts": HOSTS,
    "controllers": CONTROLLERS,
    "links": LINKS,
    "tests": TESTS,
    "testnames": _SPELLINGS,
}


class _Options:
    """The options, and what custom files add to them."""

    def __init__(self) -> None:
        self.validate: Callable[[Values], None] | None = None
        self.cli: Any = None
        parser = OptionParser(usage="%prog [options]\n(type %prog -h for details)", prog="mn")
        self.parser = parser
        self._add_choices()
        parser.add_option("--clean", "-c", action="store_true", default=False, help="clean and exit")
        parser.add_option(
            "--custom",
            action="callback",
            callback=self._custom,
            type="string",
            help="read custom classes or params from .py file(s)",
        )
        parser.add_option("--test", default=[], action="append", dest="test", help="|".join(TESTS))
        for names_of, text in (
            (("--xterms", "-x"), "spawn xterms for each node"),
            (("--mac",), "automatically set host MACs"),
            (("--arp",), "set all-pairs ARP entries"),
            (("--innamespace",), "sw and ctrl in namespace?"),
            (("--nolistenport",), "don't use passive listening port"),
            (("--pin",), "pin hosts to CPU cores"),
            (("--wait", "-w"), "wait for switches to connect"),
        ):
            parser.add_option(*names_of, action="store_true", default=False, help=text)
        parser.add_option("--ipbase", "-i", type="string", default="10.0.0.0/8", help="base IP address for hosts")
        parser.add_option(
            "--verbosity", "-v", type="choice", choices=list(LEVELS), default="info", help="|".join(LEVELS)
        )
        parser.add_option("--listenport", type="int", default=6654, help="base port for passive switch listening")
        parser.add_option("--pre", type="string", default=None, help="CLI script to run before tests")
        parser.add_option("--post", type="string", default=None, help="CLI script to run after tests")
        parser.add_option(
            "--nat",
            action="callback",
            callback=self._nat,
            help="[option=val...] adds a NAT to the topology: a gateway to the script's machine",
        )
        parser.add_option("--version", action="store_true", default=False, help="prints the version and exits")
        parser.add_option(
            "--twait", "-t", action="store", type="int", dest="wait", help="timed wait (s) for switches to connect"
        )

    def _add_choices(self) -> None:
        for name, choices, default in (
            ("switch", SWITCHES, "default"),
            ("host", HOSTS, "proc"),
            ("controller", CONTROLLERS, None),
            ("link", LINKS, "default"),
            ("topo", TOPOS, "minimal"),
        ):
            text = "|".join(sorted(choices)) + "[,param=value...]"
            action = "store" if default else "append"
            self.parser.add_option(f"--{name}", type="string", default=default, action=action, help=text)

    def _custom(self, _option: Any, _text: str, value: str, _parser: Any) -> None:
        """Read a file of the user's classes: those of known tables are added, others are names for later files."""
        for name in [value] if Path(value).is_file() else value.split(","):
            if not Path(name).is_file():
                raise Exception(f"could not find custom file: {name}")
            found: dict[str, Any] = {"__name__": Path(name).stem}
            exec(compile(Path(name).read_bytes(), name, "exec"), found)
            for key, content in found.items():
                if key in _TABLES:
                    _TABLES[key].update(content)
                elif key == "validate":
                    self.validate = content
                elif key == "CLI" and content is not cli_module.CLI:
                    self.cli = content

    def _nat(self, _option: Any, _text: str, _value: Any, parser: Any) -> None:
        words = parser.rargs.pop(0) if parser.rargs and not parser.rargs[0].startswith("-") else ""
        _, args, kwargs = splitArgs(f"nat,{words}" if words else "nat")
        parser.values.nat = (args, kwargs)


def _run_tests(net: Mininet, wanted: list[str]) -> None:
    for text in [part for one in wanted for part in one.split("+")]:
        name, args, kwargs = splitArgs(text)
        name = _SPELLINGS.get(name.lower(), name)
        test = TESTS.get(name, name)
        if callable(test):
            test(net, *args, **kwargs)
        elif hasattr(net, name):
            getattr(net, name)(*args, **kwargs)
        else:
            raise Exception(f"Test {name} is unknown - please specify one of {', '.join(TESTS)}")


def _network(options: Values) -> Mininet:
    topo = buildTopo(TOPOS, options.topo)
    link = "tcu" if options.switch == "user" and options.link == "default" else options.link
    if options.test and options.test != ["none"] and isinstance(options.wait, bool):
        options.wait = True
    net = (MininetWithControlNet if options.innamespace else Mininet)(
        topo=topo,
        switch=customClass(SWITCHES, options.switch),
        host=customClass(HOSTS, options.host),
        controller=[customClass(CONTROLLERS, one) for one in options.controller or ["default"]],
        link=customClass(LINKS, link),
        ipBase=options.ipbase,
        inNamespace=options.innamespace,
        xterms=options.xterms,
        autoSetMacs=options.mac,
        autoStaticArp=options.arp,
        autoPinCpus=options.pin,
        waitConnected=options.wait,
        listenPort=None if options.nolistenport else options.listenport,
    )
    nat = getattr(options, "nat", None)
    if nat is not None:
        net.addNAT(*nat[0], **nat[1]).configDefault()
    return net


def _begin(arguments: list[str]) -> int:
    given = _Options()
    options, rest = given.parser.parse_args(arguments)
    if rest:
        given.parser.print_help()
        return 0
    if options.version:
        output(f"{VERSION}\n")
        return 0
    if LEVELS[options.verbosity] > LEVELS["output"]:
        warn(f"*** WARNING: selected verbosity level ({options.verbosity}) will hide CLI output!\n")
    lg.setLogLevel(options.verbosity)
    if options.clean:
        cleanup()
        return 0
    begin = time.time()
    if given.validate is not None:
        given.validate(options)
    net = _network(options)
    prompt = given.cli or cli_module.CLI
    if options.pre:
        prompt(net, script=options.pre)
    net.start()
    if options.test:
        _run_tests(net, options.test)
    else:
        prompt(net)
    if options.post:
        prompt(net, script=options.post)
    net.stop()
    info(f"completed in {time.time() - begin:0.3f} seconds\n")
    return 0


def main(arguments: list[str]) -> int:
    """Do what ``mn`` does with `arguments`; return its status."""
    names.install()
    SETTINGS.remember()
    virtual_time.begin()
    try:
        return _begin(arguments)
    except KeyboardInterrupt:
        info("\n\nKeyboard Interrupt. Shutting down and cleaning up...\n\n")
        cleanup()
        return 0
    except Exception as raised:
        line = "-" * 80
        said = f"{line}\nCaught exception. Cleaning up...\n\n{type(raised).__name__}: {raised}\n{line}\n"
        error(said)
        debug(traceback.format_exc() + "\n")
        cleanup()
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
