"""What waiting for messages costs: modelled, simulated, measured, and for the messages of a program (docs/comm.md)."""
