"""The verbs of the quotes application: API, pages and command line call these, and nothing of each other."""
