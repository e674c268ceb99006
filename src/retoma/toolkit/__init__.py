"""What the applications share: their dependencies, tables, uploads, archives."""
