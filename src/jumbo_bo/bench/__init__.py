"""The paper's experiments on real data: problems, a resumable runner, and the tables and figures made from its runs.

May import: space, data, models, learning, search, methods, jumbo_bo.
"""
