"""What was measured: reports of flows, samples of ports, captures, fidelity."""
