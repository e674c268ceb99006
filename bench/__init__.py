"""retoma, the floor under it and its peers, measured side by side in one run: `python -m bench`."""
