"""A small server of OVSDB (RFC 7047) with the schema of Open vSwitch, in memory."""
