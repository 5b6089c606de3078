"""What is learned from old runs once: the pretrained net, its training, its file, and what the baselines learn.

May import: space, data, models.
"""
