"""`jumbo serve`: a local web page for the people of a study. The Optuna study is the truth; nothing is kept here.

Every page and every entry opens the study anew, as a command does, so other pages, commands and runs may work on it at
the same time. Only suggestions and reports, which take seconds to minutes, are made in the background (`work.py`).

It stands on Flask and waitress. Storages block, so threads suit them better than an event loop; forms, templates that
escape, signed cookies and a client for tests come with Flask, and waitress needs nothing else. Starlette and uvicorn
would need more packages for the same.

May import: data, study, jumbo_bo, report, runner.
"""
