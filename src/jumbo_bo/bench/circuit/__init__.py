"""Sizing an operational amplifier: schematic simulations are the old runs, the extracted layout is the new problem.

    design.py    8 variables -> device sizes
    models.py    transistor models of the SKY130 process
    netlist.py   sizes -> SPICE netlist and test bench
    mag.py       rectangles and labels as a Magic file
    cells.py     transistor, capacitor and resistor as rectangles
    layout.py    placement, routing, lengths of the wires
    extract.py   layout -> parasitics by Magic, checked against the schematic
    programs.py  runs a program with a time limit
    simulate.py  netlist -> waveforms by ngspice
    measure.py   waveforms -> specs
    score.py     specs -> one number
    evaluate.py  design -> specs and score, also many at once and with a cache
    problem.py   the benchmark problem
    search.py    how the best known layout was found
    signals.py   how alike the old signals and the layout's score are
    reference.py whether a machine gives the reference scores
    show.py      one design in numbers; `python -m jumbo_bo.bench.circuit`
    pictures.py  one design in pictures

The task is frozen: a change of anything that changes a score needs a new TASK name, which is part of every cache key.
"""

TASK = "sky130-opamp-1"
