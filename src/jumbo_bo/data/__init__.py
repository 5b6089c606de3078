"""Old runs: read from files, storages and trackers, put in order, warped, counted and compared.

May import: space.
"""
