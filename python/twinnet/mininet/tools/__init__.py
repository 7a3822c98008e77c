"""The place of the programs of a script's machine: inside of it, a file system in memory with them lies here
(:mod:`twinnet.mininet.programs`)."""
