"""Models of scikit-learn, trained for every trial on the data sets that come with it: the suite `sklearn`.

train.py        the models, their spaces and one training
old_runs.py     configurations trained beforehand, kept in a folder
problem.py      the problems
reference.py    python -m jumbo_bo.bench.trained.reference: the best configurations known -> reference.json
"""
