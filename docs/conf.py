"""Sphinx settings: Markdown pages (MyST), an API reference from the docstrings, the Furo theme.

The pages stay plain Markdown that also reads well on a code host. What only the site needs is added while it is built:
the menu, the names of files above the blocks that hold them, and links to files outside this folder, which become
downloads.
"""

import inspect
import re
from dataclasses import is_dataclass

from jumbo_bo import __version__

project = "jumbo-bo"
author = "the jumbo-bo developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]

autodoc_typehints_format = "short"
autodoc_type_aliases = {"Array": "Array", "Params": "Params"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
autodoc_member_order = "bysource"

html_theme = "furo"
html_show_copyright = False
html_title = f"jumbo-bo {version}"

MENU = {
    "Start": ["tutorial", "old-runs", "run", "lab", "explain", "report"],
    "With what you use": ["optuna", "ray", "botorch", "migrate"],
    "Applications": ["circuit"],
    "Behind it": ["how-it-works", "theory", "baselines", "results", "api"],
}

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]+\.md)(?:#[^)]*)?\)")
FILE = re.compile(r"^```(\w+) file=(\S+)$", re.MULTILINE)
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FIELD = re.compile(r"^    (\w+): [^#\n]+#  ?(.+)$", re.MULTILINE)
SPECIAL = re.compile(r"([|*\\])")


def for_the_site(app, page, source):
    text = OUTSIDE.sub(r"{download}`\1 <\2>`", source[0])
    text = FILE.sub(r"```{code-block} \1\n:caption: \2\n", text)
    if page == "index":
        for caption, pages in MENU.items():
            text += "\n\n```{toctree}\n" + f":caption: {caption}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"
    source[0] = text


def as_rst(app, what, name, obj, options, lines):
    """Docstrings are plain text: `code` in single quotes, tables of notation by indentation."""
    out, table = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not table:
            out += ["", "::", ""]
        elif table and line.strip() and not indented:
            out.append("")
        table = indented or (table and not line.strip())
        out.append(line if table or line.startswith(">>>") else rst(line))
    lines[:] = out + (field_list(obj) if what == "class" and (is_dataclass(obj) or hasattr(obj, "_fields")) else [])


def field_list(cls):
    """The fields that have a comment in the source, with it."""
    found = FIELD.findall(inspect.getsource(cls))
    return ["", *(f"- ``{name}``: {rst(comment)}" for name, comment in found), ""]


def rst(text):
    return SPECIAL.sub(r"\\\1", CODE.sub(r"``\1``", text))


def setup(app):
    app.connect("source-read", for_the_site)
    app.connect("autodoc-process-docstring", as_rst)
