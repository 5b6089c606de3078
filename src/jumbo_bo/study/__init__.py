"""study.toml, the file that describes a study: guessed from old runs, written, read and checked.

May import: space, data, methods.
"""
