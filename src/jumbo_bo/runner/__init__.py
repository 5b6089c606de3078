"""Studies described by a study.toml: `run` evaluates trials with a command, `ask` and `tell` leave it to a person.

May import: space, data, learning, search, methods, study, jumbo_bo, report.
"""
