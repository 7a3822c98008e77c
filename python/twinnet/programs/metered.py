"""Runs a program and says what it cost the processor: ``metered.py SOURCE LIMIT_S [--confined] PROGRAM ...``.

It runs in the hosts of a lab by its path, so it imports nothing of the package. What the program prints goes to
standard error; one line of JSON on standard output has SOURCE, its exit status and its resources. With ``--confined``
standard input is the open ``cgroup.procs`` of a control group, which this process and so the program enter first. A
program that still runs after LIMIT_S is ended: some go on long after their time when they were asked for more than they
reach.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time


def main(arguments: list[str]) -> int:
    """Run the program that `arguments` name; return 0 when its cost was printed, whatever its own status."""
    source, limit_s, arguments = arguments[0], float(arguments[1]), arguments[2:]
    if arguments[:1] == ["--confined"]:
        arguments = arguments[1:]
        # "0" is whoever writes: numbers of processes differ between namespaces, this one does not.
        os.write(0, b"0\n")
    begin = time.monotonic()
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        status, ended = process.wait(limit_s), False
    except subprocess.TimeoutExpired:
        process.kill()
        status, ended = process.wait(), True
    took_s = time.monotonic() - begin
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = {
        "source": source,
        "status": status,
        "ended": ended,
        "took_s": took_s,
        "processor_s": spent.ru_utime + spent.ru_stime,
        "switches": spent.ru_nvcsw,
        "involuntary_switches": spent.ru_nivcsw,
    }
    print(json.dumps(cost))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
