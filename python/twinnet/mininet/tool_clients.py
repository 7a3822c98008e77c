"""The programs ``tc``, ``ovs-vsctl`` and their kin in a script's machine, which ask the script's process; and the form
in which they ask.

Queue monitors call ``tc`` a hundred times a second, so the program has to begin fast: it is in Perl, which begins in a
third of the time of Python without its modules; where there is no Perl, in Python.

A program sends its name and its words, with a zero byte between them, and ends its side of the connection. The answer
is a line with the exit status and the length of the output in bytes, then the output and the errors.
"""

from __future__ import annotations

import shutil
import sys

__all__ = ["AT_TERMINAL", "TELL_NOTHING_OF_LOCALES", "asked_words", "client", "reply_bytes"]

TELL_NOTHING_OF_LOCALES = {"PERL_BADLANG": "0"}
"""For the environment: Perl prints a warning for each locale that the machine lacks."""

AT_TERMINAL = "--names"
"""What ``ovs-ofctl`` sends before its words at a terminal: there it tells ports by their names."""

_PERL = """\
use strict;
my ($program) = $0 =~ m{([^/]*)\\z};
my @words = @ARGV;
my %of_file = map { ($_, $_) } qw(add-flows replace-flows add-groups);
%of_file = (%of_file, "add-flow", "add-flows", "add-group", "add-groups") if @words and $words[-1] eq "-";
my ($at) = grep { $of_file{$words[$_]} } 0 .. $#words - 2;
if ($program eq "ovs-ofctl" and defined $at) {
    my ($bridge, $path) = ($words[$at + 1], $words[-1]);
    my $file = \\*STDIN;
    $path eq "-" or open($file, "<", $path) or do { print STDERR "ovs-ofctl: $path: $!\\n"; exit 1 };
    my @lines = grep { s/\\n\\z//; s/#.*//; /\\S/ } <$file>;
    @words = (@words[0 .. $at - 1], $of_file{$words[$at]}, $bridge, $path, @lines);
}
unshift @words, "--names" if $program eq "ovs-ofctl" and -t STDOUT;
my ($status, $out, $err) = ($program eq "tc" ? -1 : 1, "", "$program: no script in this machine has a switch\\n");
my $last = @ARGV ? $ARGV[-1] : "";
my ($folder, $before) = ($ENV{OVS_RUNDIR}, "");
my $entries;
my @runs = opendir($entries, $folder // "") ? sort grep { /\\.vsctl\\z/ } readdir $entries : ();
for my $run (@runs) {
    socket(my $sock, 1, 1, 0) or next;
    connect($sock, pack("S a108", 1, "$folder/$run")) or next;
    $SIG{PIPE} = "IGNORE";
    syswrite($sock, join("\\0", $program, @words));
    shutdown($sock, 1);
    my $reply = do { local $/; <$sock> };
    $reply =~ s/\\A(-?\\d+) (\\d+)\\n// or next;
    ($status, $out, $err) = ($1, substr($reply, 0, $2), substr($reply, $2));
    if ($last eq "show" or $last eq "list-br") {
        # Several processes may have switches; the answer is that of the one with most of them, and the names of all.
        $out = $last eq "list-br" ? $before . $out : length $before > length $out ? $before : $out;
        $before = $out;
    } elsif ($status >= 0 and $err !~ /no (?:bridge|port) named|no row "|is not a bridge or a socket/) {
        last;
    }
}
if ($status == -1) {
    my ($here) = $0 =~ m{(.*)/};
    for my $place (split(/:/, $ENV{PATH})) {
        exec {"$place/tc"} $0, @ARGV if $place ne $here and -x "$place/tc";
    }
    ($status, $out, $err) = (127, "", "tc: not installed\\n");
}
print $out;
print STDERR $err;
exit $status;
"""

_PYTHON = """\
import _socket, os, sys
program, words = os.path.basename(sys.argv[0]), sys.argv[1:]
of_file = {name: name for name in ("add-flows", "replace-flows", "add-groups")}
if words[-1:] == ["-"]:
    of_file |= {"add-flow": "add-flows", "add-group": "add-groups"}
at = next((at for at, word in enumerate(words[:-2]) if word in of_file), None)
if program == "ovs-ofctl" and at is not None:
    path = words[-1]
    try:
        text = sys.stdin.read() if path == "-" else open(path).read()
    except (OSError, UnicodeDecodeError) as refused:
        sys.exit(f"ovs-ofctl: {path}: {refused}")
    lines = [line.split("#")[0] for line in text.split("\\n")]
    lines = [line for line in lines if line.strip()]
    words = [*words[:at], of_file[words[at]], words[at + 1], path, *lines]
if program == "ovs-ofctl" and sys.stdout.isatty():
    words.insert(0, "--names")
status, out, err = -1 if program == "tc" else 1, b"", f"{program}: no script in this machine has a switch\\n".encode()
folder, before = os.environ.get("OVS_RUNDIR", ""), b""
elsewhere = (b"no bridge named", b"no port named", b'no row "', b"is not a bridge or a socket")
runs = os.listdir(folder) if os.path.isdir(folder) else []
for run in sorted(name for name in runs if name.endswith(".vsctl")):
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    reply = b""
    try:
        sock.connect(f"{folder}/{run}")
        sock.sendall(os.fsencode("\\0".join([program, *words])))
        sock.shutdown(_socket.SHUT_WR)
        while part := sock.recv(1 << 16):
            reply += part
    except OSError:
        pass
    if b"\\n" not in reply:
        continue
    head, reply = reply.split(b"\\n", 1)
    status, length = map(int, head.split())
    out, err = reply[:length], reply[length:]
    if sys.argv[-1] in ("show", "list-br"):
        # Several processes may have switches; the answer is that of the one with most of them, and the names of all.
        out = before + out if sys.argv[-1] == "list-br" else max(before, out, key=len)
        before = out
    elif status >= 0 and not any(said in err for said in elsewhere):
        break
if status == -1:
    here = os.path.dirname(os.path.abspath(sys.argv[0]))
    for place in os.environ["PATH"].split(":"):
        if place != here and os.access(place + "/tc", os.X_OK):
            os.execv(place + "/tc", sys.argv)
    status, out, err = 127, b"", b"tc: not installed\\n"
sys.stdout.buffer.write(out)
sys.stderr.buffer.write(err)
sys.exit(status)
"""


def client(perl: str | None = shutil.which("perl")) -> str:
    """Return the text of the program; `perl` is the path of Perl, ``None`` where there is none."""
    return f"#!{sys.executable} -IS\n{_PYTHON}" if perl is None else f"#!{perl}\n{_PERL}"


def asked_words(request: bytes) -> list[str]:
    """Return the name of the program that asked, and its words."""
    return request.decode(errors="surrogateescape").split("\0")


def reply_bytes(out: str, err: str, status: int) -> bytes:
    """Return the answer for a program: what it is to print, and its exit status."""
    printed = out.encode(errors="surrogateescape")
    return f"{status} {len(printed)}\n".encode() + printed + err.encode(errors="surrogateescape")
