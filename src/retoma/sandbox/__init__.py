"""The outside world in a box: sites that stand for those of others, and misbehave when told to.

One module, or folder, for each site; `faults` is the one place for what may go wrong, `box` puts
both behind one door and keeps the log. For tests and the demo: loopback only.
"""
