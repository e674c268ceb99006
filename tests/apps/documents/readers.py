"""A reader for children that dies of one file and never comes to the end of another, at once."""

import os

from retoma.apps.documents.clients.reading import Read, read_file


def read_or_die(path: str, name: str) -> Read:
    """As the real one, but for `…-CR.pdf` and `…-ED.pdf`: with those the real one takes its time."""
    if "-CR." in name:
        os.abort()
    while "-ED." in name:
        pass
    return read_file(path, name)
