"""The documents application."""
