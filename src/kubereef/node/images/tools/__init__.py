"""Programs that images get where the machine lacks them: each module here is one, run by the image's own Python.

They stand alone: only the standard library, nothing of this package, one file each.
"""
