"""Models of an objective, as pure functions of numbers: kernels, the exact GP, linear and multi-task regression.

May import: space.
"""
