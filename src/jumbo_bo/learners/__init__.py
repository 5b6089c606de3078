"""What the baselines learn by gradient. Beside pretrain.py these are the only modules that import jax, so recipes
import them when they are first needed."""
