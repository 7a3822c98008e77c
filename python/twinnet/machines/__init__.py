"""Physical machines as hosts: an agent on each, reached over SSH, that runs apps on the machine's own sockets."""
