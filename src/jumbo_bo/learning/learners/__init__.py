"""What the baselines learn by gradient. Beside pretrain.py, modules here are the only ones that import jax; recipes
import those when they are first needed."""
