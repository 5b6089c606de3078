import argparse, os
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import json, sys, time
from pathlib import Path
import numpy as np, optuna, warnings
from curves_data import *
from jumbo_bo.data.curves import Curve, Curves
import optuna.pruners as op

def problem(task, folder):
    e=np.array(table(task, folder)["error"].to_list())
    rows={tuple(u): i for i,u in enumerate(SPACE.grid())}
    return e, rows
def old_curves(task, tasks, folder, seed, n=100):
    rng=np.random.default_rng([seed,2]); at=np.arange(1,EPOCHS+1)/EPOCHS
    out={}
    for other in tasks:
        if other==task: continue
        e=np.array(table(other,folder)["error"].to_list())
        out[other]=tuple(Curve(at,-e[i],-float(e[i,-1])) for i in rng.choice(len(e),n,replace=False))
    return Curves(out)
def search(e, rows, sampler, pruner, epochs, trials=10**9, memo=None):
    study=optuna.create_study(sampler=sampler,pruner=pruner,study_name="s")
    used=0; regret=[]; best=np.inf; ends=e[:,-1]; lo,med=ends.min(),np.median(ends); n=0; pr=0
    while used<epochs and n<trials:
        trial=study.ask(dict(SPACE.distributions)); c=e[rows[tuple(SPACE.encode(trial.params))]]
        n+=1
        for k,v in enumerate(c):
            trial.report(float(v),k); used+=1
            if k+1<len(c) and trial.should_prune():
                study.tell(trial,state=optuna.trial.TrialState.PRUNED); pr+=1; break
        else:
            study.tell(trial,float(c[-1])); best=min(best,c[-1])
        regret.append((used,float((best-lo)/(med-lo))))
    return regret, n, pr
