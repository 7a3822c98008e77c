"""Configuration of the documentation: `make docs` builds it with Sphinx."""

import runpy
from importlib.metadata import version as installed_version
from pathlib import Path

project = "twinnet"
release = version = installed_version("twinnet")
copyright = "the twinnet developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"twinnet {release}"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Docstrings are written as numpydoc has them; a single backtick there means code.
default_role = "code"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
add_module_names = False

# A button copies the commands of a block without prompts and without what they print.
copybutton_prompt_text = r"\$ |twinnet> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# `sphinx -n` follows every name in signatures. These belong to other packages, or are parts of annotations that Sphinx
# takes for names; everything else must lead somewhere.
nitpick_ignore_regex = [
    ("py:class", r"twinnet\.lab_process\.replies\..*"),
    ("py:.*", r"(collections|typing|pathlib|os|numpy|polars|pl|networkx|gymnasium|subprocess|types|enum|abc)\..*"),
    ("py:.*", r"(datetime|decimal|random|ssl)\..*"),
    ("py:.*", r".*[\[\] ].*"),
    # Words that numpydoc's form takes for types, and names that only exist for the type checker.
    ("py:class", r"\w+"),
    # Bounds in types.
    ("py:class", r"\d+\.\d+"),
    # Internal to the package: named in signatures, not meant to be used.
    (
        "py:.*",
        r"twinnet\.(settings|traffic\.(parts|settings|traffic_settings|presets|udp\.CountedPackets)|"
        r"lab_process\.(connection|pending_reply|requests)|network\.link_settings\.DirectionSettings|"
        r"network\.(network|named_nodes)\.SomeNode|gym\.environment\.(Action|Observation)|"
        r"control\.choice|control\.controller\.Stage|control\.connected_switch\.Sender|policies\.(paths|enforcement)|"
        r"programs\.transfer|results\.shown|study\.comparison|lab\.guest_options)(\..*)?",
    ),
]

# Bases and marks that are not part of the interface.
nitpick_ignore = [
    ("py:class", "twinnet.results.read_fields.Reported"),
    ("py:class", "twinnet.results.read_fields.ReportedIfAny"),
    ("py:class", "twinnet.qos.queue.ClassWithQueue"),
]


def commits_behind(app, name, source):
    """Fill in what changes with each commit, and so is in no file: by how much the benchmarks' record is behind."""
    if name == "explanation/performance":
        tool = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "check_record_age.py"))
        source[0] = source[0].replace("<!-- commits behind -->", tool["table"](tool["of_record"]()))


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", commits_behind)
