"""What can be tried: one parameter (`axes`) and all of them (`space`), their values and their place in the unit cube.

May import: no other room.
"""
