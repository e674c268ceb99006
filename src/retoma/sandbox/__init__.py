"""Sandbox sites: local stand-ins for external services, with faults on demand.

For tests and the demo, on loopback only. `faults` decides what goes wrong, `box` wraps a site with its
faults and its log.
"""
