"""Configuration of the documentation: `make docs` builds it with Sphinx."""

project = "twinnet"
copyright = "the twinnet developers"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "twinnet"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
