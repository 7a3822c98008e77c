"""Scripts for Python 2: what is mechanical is converted, and everything else is left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import twinnet
from twinnet.mininet.python2 import for_python_3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print 'a', 1,\n", "print('a', 1, end=' ')\n"),
        ("print\n", "print()\n"),
        ("print ('x')\n", "print ('x')\n"),
        ("print ('x %d') % 3\n", "print(('x %d') % 3)\n"),
        ("print >>sys.stderr, 'e'; print 'b'\n", "print('e', file=sys.stderr); print('b')\n"),
        ("if a <> 3: print 'no'  # why\n", "if a != 3: print('no')  # why\n"),
        ("print 'a', \\\n  2\n", "print('a', \\\n  2)\n"),
        ("print.x = 1\n", "print.x = 1\n"),
        ("print('a', file=f)\n", "print('a', file=f)\n"),
        ("except (A, B), e:\n", "except (A, B) as e:\n"),
        ("raise E, 'bad'\n", "raise E('bad')\n"),
        ("raise E, 'bad', tb\n", "raise E('bad').with_traceback(tb)\n"),
        ("exec code in ns\n", "exec(code, ns)\n"),
        ("x = `y` + `z`\n", "x = repr(y) + repr(z)\n"),
        ("os.chmod(f, 0755); n = 10L; z = 0\n", "os.chmod(f, 0o755); n = 10; z = 0\n"),
        ("d.has_key(1) and d.iteritems()\n", "d.__contains__(1) and d.items()\n"),
        ("raw_input(unicode(1))\n", "input(str(1))\n"),
        ("import os, Queue\n", "import os, queue as Queue\n"),
        ("from StringIO import StringIO\n", "from io import StringIO\n"),
        ("import cPickle as pickle, ttk\n", "import pickle as pickle, tkinter.ttk as ttk\n"),
        ("import os as o\n", "import os as o\n"),
        ("n = sys.maxint\n", "n = sys.maxsize\n"),
        ("if a:\n\tb\n        c\n", "if a:\n        b\n        c\n"),
        ('s = """print \'a\'\n\tb""" # print \'c\'\n', 's = """print \'a\'\n\tb""" # print \'c\'\n'),
        ("f(lambda (a, b): (b, a), x)\n", "f(lambda pair: (lambda a, b: (b, a))(*pair), x)\n"),
        ("f = lambda (a): [lambda (c, d): a]\n", "f = lambda a: [lambda pair: (lambda c, d: a)(*pair)]\n"),
        ("f = lambda a: a\nd = {'print': 1}\n", "f = lambda a: a\nd = {'print': 1}\n"),
    ],
)
def test_statements_names_and_literals_are_spelt_as_python_3_has_them(old: str, new: str) -> None:
    assert for_python_3(old) == new


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_a_script_for_python_2_runs_with_the_option_and_is_answered_without_it(tmp_path: Path) -> None:
    script = tmp_path / "old.py"
    script.write_text(
        "from mininet.net import Mininet\nnet = Mininet(controller=None)\nh = net.addHost('h1')\n"
        "try:\n\traise ValueError, 'no'\nexcept ValueError, e:\n\tprint 'caught', e\nprint h.cmd('echo hi'),\n"
    )
    done = twinnet("mininet", "--fix-prints", str(script))
    assert done.stdout.split() == ["caught", "no", "hi"], done.stderr
    refused = twinnet("mininet", str(script))
    assert refused.returncode == 1
    assert "run it with --fix-prints" in refused.stderr


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_functions_that_have_moved_are_there_and_what_no_conversion_mends_is_left(tmp_path: Path) -> None:
    script = tmp_path / "old.py"
    script.write_text(
        "import itertools, urllib\nfrom itertools import izip\nfrom BaseHTTPServer import HTTPServer\n"
        "print urllib.urlencode({'a': 'b c'}), list(izip('a', 'b')), list(itertools.imap(len, ['x']))\n"
    )
    done = twinnet("mininet", "--fix-prints", str(script))
    assert done.stdout == "a=b+c [('a', 'b')] [1]\n", done.stderr
    script.write_text("print 'a'\ndef f():\nreturn 1\n")
    done = twinnet("mininet", "--fix-prints", str(script))
    assert done.returncode == 1
    assert "IndentationError" in done.stderr
    assert "is left to you" in done.stderr
    assert "--fix-prints" not in done.stderr


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_modules_of_a_script_for_python_2_are_converted_and_nothing_is_written_beside_them(tmp_path: Path) -> None:
    package = tmp_path / "package_of_an_old_script"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "old_part.py").write_text("def tell():\n    print 'part', 0755\n")
    (package / "new_part.py").write_text("def tell():\n    print('new', cmp(1, 2), *xrange(2), end='!\\n')\n")
    script = tmp_path / "old.py"
    script.write_text("from package_of_an_old_script import old_part, new_part\nold_part.tell()\nnew_part.tell()\n")
    done = twinnet("mininet", "--fix-prints", str(script))
    assert done.stdout == "part 493\nnew -1 0 1!\n", done.stderr
    assert not list(package.glob("__pycache__/*"))


def test_an_option_that_does_not_exist_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv[1:])\n")
    done = twinnet("mininet", "--fix-print", str(script))
    assert (done.returncode, done.stdout) == (2, "")
    assert "'--fix-print'" in done.stderr and "--fix-prints" in done.stderr
