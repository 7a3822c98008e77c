"""Laws of queueing, of chance and of TCP, checked on the virtual clock: one file each."""
