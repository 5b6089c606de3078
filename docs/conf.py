"""Sphinx settings: Markdown pages (MyST), an API reference from the docstrings, the Furo theme.

The pages stay plain Markdown that also reads well on a code host. What only the site needs is added while it is built:
the menu, the names of files above the blocks that hold them, and links to files outside this folder, which become
downloads. Formulas become MathML, which browsers draw by themselves: the site needs no network and no script for them.
"""

import inspect
import re
from dataclasses import is_dataclass
from pathlib import Path

from jumbo_bo import __version__

project = "jumbo-bo"
author = "the jumbo-bo developers"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]  # pages in Markdown, and notebooks as they were run
exclude_patterns = ["_build"]
nb_execution_mode = "off"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]

autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "Blocks", "Layers", "Params", "Score")}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_docstring_signature = False  # a dataclass without a docstring has one, with its types in quotes

html_theme = "furo"
html_math_renderer = "mathml"
html_show_copyright = False
html_title = f"jumbo-bo {version}"

MENU = {
    "Start": [
        *["tutorial", "notebook", "notebooks/first-search", "notebooks/do-old-runs-help"],
        *["old-runs", "run", "lab", "serve", "explain", "report"],
    ],
    "Your problem": ["conditions", "constraints", "limits", "goals", "curves", "corrections", "beliefs"],
    "Integrations": ["optuna", "ray", "botorch", "agents", "migrate"],
    "Applications": ["circuit"],
    "Background": [
        *["how-it-works", "paper", "theory", "baselines", "results", "big"],
        *["reliability", "suites", "peers", "api"],
    ],
}

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]+\.md)(?:#[^)]*)?\)")
FILE = re.compile(r"^```(\w+) file=(\S+)$", re.MULTILINE)
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FIELD = re.compile(r"^    (\w+): [^#\n]+#  ?(.+)$", re.MULTILINE)
SPECIAL = re.compile(r"([|*\\])")
OPTION = re.compile(r"(\w+)( {2,})(?=\S)")
FUNCTION = re.compile(r"(<mi>\w{2,}</mi>)\s*<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>\()")
ELSEWHERE = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*\s(?:src|href)="(?:https?:)?//[^"]*|(?:url\(|@import)\s*["']?(?:https?:)?//"""
)
ALIAS = "TypeAliasForwardRef"  # what autodoc calls an alias inside another type


def for_the_site(app, page, source):
    text = OUTSIDE.sub(r"{download}`\1 <\2>`", source[0])
    text = FILE.sub(r"```{code-block} \1\n:caption: \2\n", text)
    if page == "index":
        for caption, pages in MENU.items():
            text += "\n\n```{toctree}\n" + f":caption: {caption}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"
    source[0] = text


def as_rst(app, what, name, obj, options, lines):
    """Docstrings are plain text: `code` in single quotes, tables of notation by indentation, options in two columns."""
    if what == "class" and lines and lines[0].startswith(f"{obj.__name__}("):
        lines.clear()  # a dataclass without a docstring has its signature for one
    out, table = [], False
    for line in options_as_list(lines):
        indented = line.startswith("    ")
        if indented and not table:
            out += ["", ".. code-block:: text", ""]
        elif table and line.strip() and not indented:
            out.append("")
        table = indented or (table and not line.strip())
        out.append(line if table or line.startswith(">>>") else rst(line))
    lines[:] = out + (field_list(obj) if what == "class" and (is_dataclass(obj) or hasattr(obj, "_fields")) else [])


def readable(app, what, name, obj, options, signature, returns):
    return signature and signature.replace("<factory>", "..."), returns


def options_as_list(lines):
    """Lines `name  what it is`, each with the lines that go on in its second column, as a list with one line each."""
    out, column = [], 0
    for line in lines:
        if option := OPTION.match(line):
            column = option.end(2)
            out.append(f"- `{option[1]}`: {line[column:]}")
        elif column and line.startswith(" " * column):
            out[-1] += f" {line.strip()}"
        else:
            column = 0
            out.append(line)
    return out


def field_list(cls):
    """The fields that have a comment in the source, with it."""
    found = FIELD.findall(inspect.getsource(cls))
    return ["", *(f"- ``{name}``: {rst(comment)}" for name, comment in found), ""]


def rst(text):
    return SPECIAL.sub(r"\\\1", CODE.sub(r"``\1``", text))


def add_formula(translator, node):
    from docutils.nodes import SkipNode, math_block
    from docutils.utils.math.latex2mathml import tex2mathml

    block = isinstance(node, math_block)
    formula = tex2mathml(node.astext(), as_block=block)  # one that it cannot read stops the build
    formula = FUNCTION.sub(r'<mspace width="0.17em"/>\1<mspace width="0.17em"/>', formula)  # 2 log x, not 2logx
    translator.body.append(f'<div class="math">{formula}</div>\n' if block else formula)
    raise SkipNode


def faults(text):
    """What no file of the site may hold: anything that a browser loads from another host, and names of Sphinx's own."""
    return [match[0] for match in ELSEWHERE.finditer(text)] + [ALIAS] * (ALIAS in text)


def check(app, exception):
    from sphinx.errors import ExtensionError

    if exception is None and app.builder.format == "html":
        files = sorted(file for kind in ("html", "css") for file in Path(app.outdir).rglob(f"*.{kind}"))
        found = [f"{file.relative_to(app.outdir)}: {fault}" for file in files for fault in faults(file.read_text())]
        if found:
            raise ExtensionError("\n".join(["the site is not as it should be:", *found]))


def setup(app):
    from sphinx.util.inspect import TypeAliasForwardRef

    TypeAliasForwardRef.__repr__ = lambda self: self.name  # `Array | None`, not `TypeAliasForwardRef('Array') | None`
    app.add_html_math_renderer("mathml", (add_formula, None), (add_formula, None))
    app.connect("build-finished", check)
    app.connect("source-read", for_the_site)
    app.connect("autodoc-process-docstring", as_rst)
    app.connect("autodoc-process-signature", readable)
