"""The engine's verbs for people: what the API, the pages and the command line call, and nothing of each other."""
