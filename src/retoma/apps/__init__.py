"""The applications: rooms without doors between them, each the same six files."""
