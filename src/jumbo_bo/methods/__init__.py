"""One table of methods: name -> recipe. Adding one is a file here and a line below."""

from __future__ import annotations

from jumbo_bo.methods.base import Choice, Learner, Recipe, View
from jumbo_bo.methods.box_gp_ucb import BoxGPUCB
from jumbo_bo.methods.gp_ucb import GPUCB
from jumbo_bo.methods.joint import JumboJoint
from jumbo_bo.methods.jumbo import Jumbo, OfflineDKL
from jumbo_bo.methods.random import Random

METHODS: dict[str, Recipe] = {
    "jumbo-joint": JumboJoint(),
    "jumbo": Jumbo(),
    "gp-ucb": GPUCB(),
    "offline-dkl": OfflineDKL(),
    "jumbo-blr": Jumbo(linear=True),
    "jumbo-constant": Jumbo(gate="constant"),
    "box-gp-ucb": BoxGPUCB(),
    "random": Random(),
}

__all__ = [
    "GPUCB",
    "METHODS",
    "BoxGPUCB",
    "Choice",
    "Jumbo",
    "JumboJoint",
    "Learner",
    "OfflineDKL",
    "Random",
    "Recipe",
    "View",
]
