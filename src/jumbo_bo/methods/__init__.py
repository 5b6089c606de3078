"""One table of methods: name -> recipe. Adding one is a file here and a line below.

A method is loaded on first use, so that reading a study file, which only needs the names, does not load the models.

May import: space, data, models, learning, search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jumbo_bo.methods.base import Choice, Recipe, Surrogate, View
    from jumbo_bo.methods.best_first import BestFirst
    from jumbo_bo.methods.bohb import BOHB
    from jumbo_bo.methods.box_gp_ucb import BoxGPUCB
    from jumbo_bo.methods.dngo import DNGO
    from jumbo_bo.methods.empirical_gp import EmpiricalGP
    from jumbo_bo.methods.fsbo import FSBO
    from jumbo_bo.methods.gcp import GCP
    from jumbo_bo.methods.gp_ucb import GPUCB
    from jumbo_bo.methods.hyperbo import HyperBO
    from jumbo_bo.methods.joint import JumboJoint
    from jumbo_bo.methods.jumbo import Jumbo
    from jumbo_bo.methods.jumbo_printed import JumboPrinted, OfflineDKL
    from jumbo_bo.methods.mf_gp_ucb import MFGPUCB
    from jumbo_bo.methods.mixture import JumboMixture
    from jumbo_bo.methods.mt_ablr import MTABLR
    from jumbo_bo.methods.mt_bohamiann import MTBohamiann
    from jumbo_bo.methods.mt_gp import MTGP
    from jumbo_bo.methods.optuna_samplers import OptunaSampler
    from jumbo_bo.methods.random import Random
    from jumbo_bo.methods.rgpe import RGPE
    from jumbo_bo.methods.scaml_gp import ScaMLGP


class Line(NamedTuple):
    """A file here, its class, and the options."""

    file: str
    kind: str
    options: Mapping[str, Any] = {}


class Methods(Mapping[str, "Recipe"]):
    def __init__(self, lines: Mapping[str, Line]) -> None:
        self.lines = dict(lines)
        self._made: dict[str, Recipe] = {}

    def __getitem__(self, name: str) -> Recipe:
        if name not in self._made:
            file, kind, options = self.lines[name]
            self._made[name] = getattr(import_module(f"{__name__}.{file}"), kind)(**options)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.lines

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)


RELEASED = {"warm": "g", "preset": "released", "rate": math.log(10.0), "released": True}

METHODS = Methods(
    {
        "jumbo-mixture": Line("mixture", "JumboMixture"),
        "jumbo-joint": Line("joint", "JumboJoint"),
        "jumbo": Line("jumbo", "Jumbo"),
        "gp-ucb": Line("gp_ucb", "GPUCB"),
        "jumbo-printed": Line("jumbo_printed", "JumboPrinted"),
        "jumbo-released": Line("jumbo_printed", "JumboPrinted", RELEASED),
        "offline-dkl": Line("jumbo_printed", "OfflineDKL"),
        "jumbo-blr": Line("jumbo_printed", "JumboPrinted", {"linear": True}),
        "jumbo-constant": Line("jumbo_printed", "JumboPrinted", {"gate": "constant"}),
        "dngo": Line("dngo", "DNGO"),
        "mt-ablr": Line("mt_ablr", "MTABLR"),
        "mt-bohamiann": Line("mt_bohamiann", "MTBohamiann"),
        "gcp": Line("gcp", "GCP"),
        "cts": Line("gcp", "GCP", {"variant": "prior"}),
        "mf-gp-ucb": Line("mf_gp_ucb", "MFGPUCB"),
        "box-gp-ucb": Line("box_gp_ucb", "BoxGPUCB"),
        "mt-gp": Line("mt_gp", "MTGP"),
        "rgpe": Line("rgpe", "RGPE"),
        "empirical-gp": Line("empirical_gp", "EmpiricalGP"),
        "scaml-gp": Line("scaml_gp", "ScaMLGP"),
        "best-first": Line("best_first", "BestFirst"),
        "fsbo": Line("fsbo", "FSBO"),
        "hyperbo": Line("hyperbo", "HyperBO"),
        "bohb": Line("bohb", "BOHB"),
        "tpe": Line("optuna_samplers", "OptunaSampler", {"sampler": "tpe"}),
        "optuna-gp": Line("optuna_samplers", "OptunaSampler", {"sampler": "optuna-gp"}),
        "cma-es": Line("optuna_samplers", "OptunaSampler", {"sampler": "cma-es"}),
        "random": Line("random", "Random"),
    }
)

DEFAULT = "jumbo-mixture"

_HOME = {line.kind: line.file for line in METHODS.lines.values()}
_HOME |= dict.fromkeys(("Choice", "Recipe", "Surrogate", "View"), "base")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def name_of(recipe: Recipe) -> str:
    """The name of a method; of one with other options, that of the first of its kind."""
    kin = [name for name, line in METHODS.lines.items() if line.kind == type(recipe).__name__]
    names = [name for name in kin if METHODS[name] == recipe]
    names += [name for name in kin if type(METHODS[name]) is type(recipe)]
    return names[0] if names else type(recipe).__name__


__all__ = [
    "BOHB",
    "DEFAULT",
    "DNGO",
    "FSBO",
    "GCP",
    "GPUCB",
    "METHODS",
    "MFGPUCB",
    "MTABLR",
    "MTGP",
    "RGPE",
    "BestFirst",
    "BoxGPUCB",
    "Choice",
    "EmpiricalGP",
    "HyperBO",
    "Jumbo",
    "JumboJoint",
    "JumboMixture",
    "JumboPrinted",
    "MTBohamiann",
    "OfflineDKL",
    "OptunaSampler",
    "Random",
    "Recipe",
    "ScaMLGP",
    "Surrogate",
    "View",
    "name_of",
]
