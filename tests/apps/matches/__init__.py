"""The matches application."""
