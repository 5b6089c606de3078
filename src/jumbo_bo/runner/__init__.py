"""Studies described by a study.toml: `run` evaluates trials with a command, `ask` and `tell` leave it to a person."""
