"""Runs the notebooks of this folder and keeps what they show, without what is of this machine.

python docs/notebooks/run.py        needs: pip install 'jumbo-bo[docs,bench]'
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def main() -> None:
    for path in sorted(HERE.glob("*.ipynb")):
        book = nbformat.read(path, as_version=4)
        with TemporaryDirectory() as folder:
            NotebookClient(book, resources={"metadata": {"path": folder}}).execute()
        for cell in book.cells:
            cell.metadata = {}
            if cell.cell_type == "code":
                # Warnings of libraries; they name files of this machine.
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
                for output in cell.outputs:  # a page shows the table, and the text has an address in memory
                    if "text/html" in output.get("data", {}):
                        output.data.pop("text/plain", None)
        book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        nbformat.write(book, path)
        print(path.name)


if __name__ == "__main__":
    main()
