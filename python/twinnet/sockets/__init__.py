"""Apps on real sockets of the machine itself: what ``twinnet send`` and ``twinnet recv`` are made of."""
