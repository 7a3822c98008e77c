"""Mininet's names on twinnet: scripts that import ``mininet`` run here unchanged (``twinnet mininet SCRIPT``).

A script runs in a machine of its own (:mod:`twinnet.mininet.machine`), where `mininet` and ``mininet.X`` are this
package and its modules (:mod:`twinnet.mininet.names`). Nodes are Linux network namespaces with a shell each; switches
and shaped links are twinnet's own (:mod:`twinnet.mininet.fabric`).
"""
