"""A laboratory for software-defined networks."""
