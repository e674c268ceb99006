"""The systems retoma is measured against: optional installs, each at its fastest durable settings.

A module here is named peer_… so that it cannot be mistaken for the library it drives. What it offers to
the parent process imports nothing of the peer; what runs in a child imports it where it is used.
"""
