"""A few seconds of `make fuzz`: the same inputs on every machine, in a process of their own."""

from __future__ import annotations

from targets import TARGETS

from fuzz import Count, run, table, together

INPUTS = 60  # of each target
SEED = 1


def test_damaged_inputs_are_read_or_refused() -> None:
    counts: dict[str, Count] = {}
    together(run([(name, SEED, 0, INPUTS) for name in TARGETS]), counts)
    assert list(counts) == list(TARGETS)
    assert all(count.inputs == INPUTS for count in counts.values()), table(counts)
    some_of_both = {name for name, count in counts.items() if 0 < count.read < INPUTS}
    assert some_of_both >= counts.keys() - {"tell"}, table(counts)
    assert not any(count.findings for count in counts.values()), table(counts)
