"""One table of methods: name -> recipe. Adding one is a file here and a line below.

May import: space, data, models, learning, search.
"""

from __future__ import annotations

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
from jumbo_bo.methods.jumbo import Jumbo, OfflineDKL
from jumbo_bo.methods.mf_gp_ucb import MFGPUCB
from jumbo_bo.methods.mixture import JumboMixture
from jumbo_bo.methods.mt_ablr import MTABLR
from jumbo_bo.methods.mt_bohamiann import MTBohamiann
from jumbo_bo.methods.mt_gp import MTGP
from jumbo_bo.methods.optuna_samplers import OptunaSampler
from jumbo_bo.methods.random import Random
from jumbo_bo.methods.rgpe import RGPE
from jumbo_bo.methods.scaml_gp import ScaMLGP

METHODS: dict[str, Recipe] = {
    "jumbo-mixture": JumboMixture(),
    "jumbo-joint": JumboJoint(),
    "jumbo": Jumbo(),
    "gp-ucb": GPUCB(),
    "offline-dkl": OfflineDKL(),
    "jumbo-blr": Jumbo(linear=True),
    "jumbo-constant": Jumbo(gate="constant"),
    "dngo": DNGO(),
    "mt-ablr": MTABLR(),
    "mt-bohamiann": MTBohamiann(),
    "gcp": GCP(),
    "cts": GCP(variant="prior"),
    "mf-gp-ucb": MFGPUCB(),
    "box-gp-ucb": BoxGPUCB(),
    "mt-gp": MTGP(),
    "rgpe": RGPE(),
    "empirical-gp": EmpiricalGP(),
    "scaml-gp": ScaMLGP(),
    "best-first": BestFirst(),
    "fsbo": FSBO(),
    "hyperbo": HyperBO(),
    "bohb": BOHB(),
    "tpe": OptunaSampler("tpe"),
    "optuna-gp": OptunaSampler("optuna-gp"),
    "cma-es": OptunaSampler("cma-es"),
    "random": Random(),
}


DEFAULT = "jumbo-mixture"


def name_of(recipe: Recipe) -> str:
    """The name of a method; of one with other options, that of the first of its kind."""
    names = [name for name, known in METHODS.items() if known == recipe]
    names += [name for name, known in METHODS.items() if type(known) is type(recipe)]
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
