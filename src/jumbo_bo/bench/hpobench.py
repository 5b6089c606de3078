"""HPOBench's MLP problems: tune a network on eight OpenML datasets; old tasks = the seven others' complete tables.

The accuracy of one training seed scatters by 0.02 to 0.03, more than the best thousand configurations differ, so
regrets below 0.001 (0.1 % accuracy) count as that in logarithms.
"""

from __future__ import annotations

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import MLP
from jumbo_bo.bench.tabular import old_tables, tabular
from jumbo_bo.errors import InputError

UNIT = 1e-3


def leave_one_out(dataset: str) -> Problem:
    if dataset not in MLP.files:
        raise InputError(f"no HPOBench MLP dataset {dataset!r}; choose one of {list(MLP.files)}")
    return tabular(MLP, dataset, old_tables(MLP, [name for name in MLP.files if name != dataset]), UNIT, UNIT)
