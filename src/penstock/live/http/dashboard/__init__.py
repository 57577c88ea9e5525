"""What the dashboard shows of the last minutes: lanes of jobs, samples, tuned values.

It is kept only by a controller with an HTTP port, in bounded memory, and is updated at every event:
it includes phases of a millisecond. Nothing else depends on it.
"""
