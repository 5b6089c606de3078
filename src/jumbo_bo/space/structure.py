"""Under which condition each parameter exists, learned from configurations of which not all have the same parameters.

A parameter has a parent: one that every configuration with it has, and whose values tell those with it from those
without. Several may fit at first; then it exists where any of them says so, as do values that no configuration had yet.
When no single parent fits, several together may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import InputError
from jumbo_bo.space.formula import Absent, Formula, parse, word
from jumbo_bo.space.space import Params, Space
from jumbo_bo.space.values import same

MOST_PARENTS = 3  # that a condition speaks of
SURE = 5  # configurations with and without a parameter: of fewer a number without steps may tell them apart by chance


class Seen(NamedTuple):
    """A configuration that somebody tried, with the range of each of its parameters."""

    params: Params
    distributions: Mapping[str, BaseDistribution]


class Split(NamedTuple):
    """A condition on one parent that holds wherever the parameter was seen."""

    text: str
    holds: Callable[[Any], bool]


def learned_space(studies: Sequence[Sequence[Seen]]) -> Space | None:
    """The parameters that all configurations share, in alphabetical order, then those with a condition; each with one
    range. None when there are none. A condition needs a study in which some configurations have the parameter and
    others do not; then it must be true of all studies."""
    tried = [seen for study in studies for seen in study]
    ranges = _ranges(tried)
    found = {name: ranges[name] for name in sorted(ranges) if all(name in seen.params for seen in tried)}
    left = {name: [s for s in tried if name in s.params] for name in ranges if name not in found}
    conditions: dict[str, str] = {}
    for name in sorted(left, key=lambda name: (-len(left[name]), name)):  # a parent is in more configurations
        mixed = any(len({name in seen.params for seen in study}) == 2 for study in studies)
        text = _condition(name, tried, found) if mixed else None
        if text is not None and _agrees(name, text, tried, found):
            found[name], conditions[name] = ranges[name], text
    return Space(found, conditions=conditions) if found else None


def _ranges(tried: Iterable[Seen]) -> dict[str, BaseDistribution]:
    """Of the parameters whose range never changes, and that can vary."""
    first: dict[str, BaseDistribution] = {}
    changed = set()
    for seen in tried:
        for name, dist in seen.distributions.items():
            if first.setdefault(name, dist) != dist:
                changed.add(name)
    return {name: dist for name, dist in first.items() if name not in changed and not dist.single()}


def _condition(name: str, tried: Sequence[Seen], parents: Mapping[str, BaseDistribution]) -> str | None:
    having = [seen for seen in tried if name in seen.params]
    lacking = [seen for seen in tried if name not in seen.params]
    splits: dict[str, Split] = {}
    for parent, dist in parents.items():
        if all(parent in seen.params for seen in having):
            split = split_of(
                parent,
                dist,
                [seen.params[parent] for seen in having],
                [seen.params[parent] for seen in lacking if parent in seen.params],
            )
            if split is not None:
                splits[parent] = split

    def wrong(parent: str, among: Sequence[Seen]) -> list[Seen]:
        """Configurations that lack the parameter though this parent does not say so."""
        return [s for s in among if parent in s.params and splits[parent].holds(s.params[parent])]

    single = [parent for parent in splits if not wrong(parent, lacking)]
    discrete = [p for p in single if isinstance(parents[p], CategoricalDistribution | IntDistribution)]
    if single and (discrete or min(len(having), len(lacking)) >= SURE):
        return " or ".join(splits[parent].text for parent in (discrete or single)[:MOST_PARENTS])
    splits = {p: split for p, split in splits.items() if not isinstance(parents[p], FloatDistribution)}
    chosen: list[str] = []
    while lacking and len(chosen) < MOST_PARENTS:
        best = min(splits, key=lambda parent: len(wrong(parent, lacking)), default=None)
        if best is None or len(wrong(best, lacking)) == len(lacking):
            return None
        chosen, lacking = [*chosen, best], wrong(best, lacking)
    return " and ".join(splits[parent].text for parent in chosen) if chosen and not lacking else None


def split_of(parent: str, dist: BaseDistribution, having: Iterable[Any], lacking: Iterable[Any]) -> Split | None:
    """The widest condition on `parent` that holds for all values in `having` and for few in `lacking`."""
    name = word(parent)
    if isinstance(dist, CategoricalDistribution):
        gone = {same(value) for value in lacking} - {same(value) for value in having}
        kept = [choice for choice in dist.choices if same(choice) not in gone]
        if not gone or not kept:
            return None
        text = f"{name} == {kept[0]!r}" if len(kept) == 1 else f"{name} in [{', '.join(map(repr, kept))}]"
        return Split(text, lambda value: same(value) not in gone)
    inside, outside = list(having), list(lacking)
    below = max((value for value in outside if value < min(inside)), default=None)
    above = min((value for value in outside if value > max(inside)), default=None)
    if below is None and above is None:
        return None
    bounds = {f"{name} > {below!r}": below, f"{name} < {above!r}": above}
    text = " and ".join(text for text, bound in bounds.items() if bound is not None)
    return Split(text, lambda v: (below is None or v > below) and (above is None or v < above))


def _agrees(name: str, text: str, tried: Sequence[Seen], parents: Iterable[str]) -> bool:
    """Whether the condition can be written, and says of every configuration what is true."""
    try:
        formula = parse(text, list(parents))
        return all(_holds(formula, seen.params) == (name in seen.params) for seen in tried)
    except InputError:  # a name that cannot be quoted, or a text that is too long
        return False


def _holds(formula: Formula, params: Params) -> bool:
    try:
        return formula.holds(params)
    except Absent:
        return False
