"""What the demo worlds of the applications share: the stage, its board, its account."""
