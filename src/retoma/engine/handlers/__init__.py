"""What a handler is and what it may use: kinds, context, steps, remote work."""
