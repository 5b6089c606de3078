"""Where to look next: scores of points, their maximum over a space, and what theory promises.

May import: space, models.
"""
