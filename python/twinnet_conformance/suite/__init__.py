"""The cases. A module's name is its subject; each case is named by its section of the specification."""
