"""Readers of files that strangers hand in: PDF, DOCX, HTML and plain text, each read in a confined child."""
