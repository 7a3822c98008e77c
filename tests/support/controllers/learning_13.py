"""The learning switch of the examples, in the folder where the tests' controllers stand."""

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[3] / "examples" / "learning_switch.py"

os.execv(sys.executable, [sys.executable, str(PROGRAM), *sys.argv[1:]])
