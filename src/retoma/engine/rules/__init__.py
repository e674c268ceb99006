"""What is decided without I/O: states, moves, retries, prices, lengths of time."""
