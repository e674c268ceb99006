"""The quotes application."""
