"""All commands: where each is, and what ``--help`` says of it. Adding a command is adding its line here."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMMANDS", "Entry"]


class Entry(NamedTuple):
    """A command's module in `twinnet.cli`, its click command in that module, and one line of help."""

    module: str
    attribute: str
    help: str


COMMANDS: dict[str, Entry] = {
    "run": Entry("study_commands", "run", "Make the runs of a study and report its answer."),
    "twin": Entry("twin_command", "twin", "Make the runs of a study on both clocks and compare them."),
    "report": Entry("study_commands", "report", "Write the report of results: a page, figures, tables."),
    "figure": Entry("figure_command", "figure", "Draw a figure of results: axes, colours, levels, size."),
    "gather": Entry("shard_commands", "gather", "Join the results that several machines or shards made."),
    "pack": Entry("pack_commands", "pack", "Pack results into one file that others can check."),
    "check": Entry("pack_commands", "check", "Check a pack of results, and make some of its runs again."),
    "cluster": Entry("cluster_commands", "cluster", "Make the certificates of a cluster."),
    "scheduler": Entry("cluster_commands", "scheduler", "Connect the workers of a cluster with `twinnet run --on`."),
    "worker": Entry("cluster_commands", "worker", "Make runs for a scheduler, one in each slot of this machine."),
    "agent": Entry("agent_command", "agent", "Be a host of a study: started over SSH by the machine that runs it."),
    "compare": Entry("study_commands", "compare", "Compare two folders of results, with tests."),
    "traces": Entry("traces_command", "traces", "Tell where the traces of two runs part."),
    "new": Entry("new_command", "new", "Write a commented study to start from."),
    "studies": Entry("study_commands", "studies", "List the built-in studies."),
    "policy": Entry("policy_command", "policy", "QoS policies: list, show, write and compare them."),
    "schema": Entry("study_commands", "schema", "Print the JSON schema of a kind of file."),
    "validate": Entry("validate_command", "validate", "Check the simulation against theory."),
    "analyze": Entry(
        "analyze_command", "analyze", "Read captures: conversations, throughput, RTP, TCP, delay and loss."
    ),
    "send": Entry("send_command", "send", "Send generated traffic from this machine."),
    "recv": Entry("recv_command", "recv", "Receive generated traffic on this machine, and judge it."),
    "abw": Entry("abw_command", "abw", "Estimate the available bandwidth to another machine, or listen there."),
    "lab": Entry("lab_command", "lab", "Start a network and open its prompt."),
    "mininet": Entry("mininet_commands", "mininet", "Run a Python script of Mininet."),
    "mn": Entry("mininet_commands", "mn", "Mininet's command, with its options."),
    "graph": Entry("graph_command", "graph", "Draw a network: SVG, PDF, PNG, Graphviz or Mermaid."),
    "do": Entry("do_command", "do", "Do lines of the prompt in a running lab."),
    "capture": Entry("capture_command", "capture", "Capture a port of a running lab, live into Wireshark too."),
    "exec": Entry("exec_command", "exec_", "Run a program in a host of a running lab."),
    "flows": Entry("flows_command", "flows", "Show, add or delete a switch's flows in a running lab."),
    "switch": Entry("switch_command", "switch", "Run one switch alone, on existing interfaces of this machine."),
    "conformance": Entry("conformance_command", "conformance", "Try a switch against the OpenFlow specifications."),
    "live": Entry("live_command", "live", "Show a running lab, a campaign or a finished run on a page in the browser."),
    "labs": Entry("labs_command", "labs", "List your running labs."),
    "kernel": Entry(
        "kernel_command", "kernel", "Build, install and show the kernel for programs on the virtual clock."
    ),
    "completion": Entry(
        "completion_command", "completion", "Print the script that completes twinnet's words in your shell."
    ),
    "tour": Entry("tour_command", "tour", "Show in three minutes what there is, on this machine."),
    "doctor": Entry("doctor_command", "doctor", "Show what this machine can and cannot do, and the remedy."),
}
