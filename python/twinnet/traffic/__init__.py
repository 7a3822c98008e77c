"""Traffic: kinds of sources and sinks, presets, distributions, traces."""
