"""Many writes, one commit."""
