"""Old runs that nobody remembers: what lies in folders and storages, and how much of it overlaps with a study.

places.py    which files and folders hold runs, without opening more of them than a few bytes
heads.py     of each place the first rows: its columns, and about how many rows there are
judge.py     how well they fit the study; small ones are read as `jumbo run` would, so that what is said is true
entries.py   the [[history]] entries that read them, added to a study file
"""
