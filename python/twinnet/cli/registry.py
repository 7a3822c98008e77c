"""All commands: where each is, and what ``--help`` says of it. Adding a command is adding its line here."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMMANDS", "Entry"]


class Entry(NamedTuple):
    """A command's module, its click command in that module, and one line of help."""

    module: str
    attribute: str
    help: str


COMMANDS: dict[str, Entry] = {
    "run": Entry("twinnet.cli.study_commands", "run", "Make the runs of a study and tell its answer."),
    "twin": Entry("twinnet.cli.twin_command", "twin", "Make the runs of a study on both clocks and compare them."),
    "report": Entry("twinnet.cli.study_commands", "report", "Write the report of results: a page, figures, tables."),
    "gather": Entry("twinnet.cli.shard_commands", "gather", "Join the results that several machines or shards made."),
    "pack": Entry("twinnet.cli.pack_commands", "pack", "Pack results into one file that others can check."),
    "check": Entry("twinnet.cli.pack_commands", "check", "Check a pack of results, and make some of its runs again."),
    "cluster": Entry("twinnet.cli.cluster_commands", "cluster", "Make the certificates of a cluster."),
    "scheduler": Entry(
        "twinnet.cli.cluster_commands", "scheduler", "Connect the workers of a cluster with `twinnet run --on`."
    ),
    "worker": Entry(
        "twinnet.cli.cluster_commands", "worker", "Make runs for a scheduler, one in each slot of this machine."
    ),
    "agent": Entry(
        "twinnet.cli.agent_command", "agent", "Be a host of a study: started over SSH by the machine that runs it."
    ),
    "compare": Entry("twinnet.cli.study_commands", "compare", "Compare two folders of results, with tests."),
    "new": Entry("twinnet.cli.new_command", "new", "Write a commented study to start from."),
    "studies": Entry("twinnet.cli.study_commands", "studies", "List the built-in studies."),
    "policy": Entry("twinnet.cli.policy_command", "policy", "QoS policies: list, show, write and compare them."),
    "schema": Entry("twinnet.cli.study_commands", "schema", "Print the JSON schema of a kind of file."),
    "validate": Entry(
        "twinnet.cli.validate_command", "validate", "Check the simulation against theory, and tell where it stands."
    ),
    "analyze": Entry(
        "twinnet.cli.analyze_command", "analyze", "Read captures: conversations, throughput, RTP, TCP, delay and loss."
    ),
    "send": Entry("twinnet.cli.send_command", "send", "Send generated traffic from this machine."),
    "recv": Entry("twinnet.cli.recv_command", "recv", "Receive generated traffic on this machine, and judge it."),
    "abw": Entry(
        "twinnet.cli.abw_command", "abw", "Estimate the available bandwidth to another machine, or listen there."
    ),
    "lab": Entry("twinnet.cli.lab_command", "lab", "Start a network and open its prompt."),
    "mininet": Entry("twinnet.cli.mininet_commands", "mininet", "Run a Python script of Mininet."),
    "mn": Entry("twinnet.cli.mininet_commands", "mn", "Mininet's command, with its options."),
    "graph": Entry("twinnet.cli.graph_command", "graph", "Draw a network: SVG, PDF, PNG, Graphviz or Mermaid."),
    "do": Entry("twinnet.cli.do_command", "do", "Do lines of the prompt in a running lab."),
    "capture": Entry(
        "twinnet.cli.capture_command", "capture", "Capture a port of a running lab, live into Wireshark too."
    ),
    "exec": Entry("twinnet.cli.exec_command", "exec_", "Run a program in a host of a running lab."),
    "flows": Entry("twinnet.cli.flows_command", "flows", "Show, add or delete a switch's flows in a running lab."),
    "switch": Entry(
        "twinnet.cli.switch_command", "switch", "Run one switch alone, on existing interfaces of this machine."
    ),
    "conformance": Entry(
        "twinnet.cli.conformance_command", "conformance", "Try a switch against the OpenFlow specifications."
    ),
    "live": Entry("twinnet.cli.live_command", "live", "Show a running lab on a page in the browser."),
    "labs": Entry("twinnet.cli.labs_command", "labs", "List your running labs."),
    "kernel": Entry(
        "twinnet.cli.kernel_command", "kernel", "Build, install and show the kernel for programs on the virtual clock."
    ),
    "completion": Entry(
        "twinnet.cli.completion_command", "completion", "Print the script that completes twinnet's words in your shell."
    ),
    "doctor": Entry(
        "twinnet.cli.doctor_command", "doctor", "Show what this machine can and cannot do, and the remedy."
    ),
}
