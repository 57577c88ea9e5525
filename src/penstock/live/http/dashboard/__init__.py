"""What the dashboard shows of the last minutes: lanes of jobs, samples, tuned values.

It is kept only where there is an HTTP port, in bounded memory, and is fed as things happen: a phase
of a millisecond has its place in it. Nothing else depends on it.
"""
