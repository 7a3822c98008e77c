"""The process that runs a lab: starting it, talking to it, and programs in its hosts."""
