"""The board: what a worker that was stopped for longer than its lease may still write, system by system.

`director.play` runs the same scenarios with real processes against each side; `judge.judge` decides by an
append-only file that the handlers write and by what the system itself says of each job.
"""
