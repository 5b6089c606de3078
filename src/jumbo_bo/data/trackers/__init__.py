"""Old runs from where they are: an MLflow tracking store, exported W&B runs, Ray Tune result folders -> History.

All readers take the options of `History.from_frame`: task, direction, target, rename, fill, on_bad_rows. What they read
is never changed and nothing is unpickled.
"""

from jumbo_bo.data.trackers.mlflow import from_mlflow
from jumbo_bo.data.trackers.ray import from_ray
from jumbo_bo.data.trackers.wandb import from_wandb

__all__ = ["from_mlflow", "from_ray", "from_wandb"]
