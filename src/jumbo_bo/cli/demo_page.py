"""The page of `jumbo demo`: what the old runs were worth, and every trial with its reason. It needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from jumbo_bo.cli.regret import Lines, svg
from jumbo_bo.report.head import head

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """svg { width: 100%; height: auto; } svg text { font-size: 13px; fill: var(--ink); }
thead th { padding: .5rem .8rem; }
"""
LONG = 30  # characters; a cell with more is text


def page(title: str, verdict: str, lines: Lines, results: str, trials: str) -> str:
    """`results` and `trials` are made by `table`."""
    return f"""{head(title, POLICY, STYLE)}
<body>
<header><h1>{escape(title)}</h1><p>{escape(verdict)}</p></header>
<main>
<section><h2>How far the best so far is above the lowest possible loss</h2>{svg(lines)}{results}</section>
<section><h2>Every trial with old runs, and why</h2><div class="box">{trials}</div></section>
</main>
</body>
</html>
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th scope=col>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(_cell(i, cell) for i, cell in enumerate(row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cell(i: int, text: str) -> str:
    kind = "" if i == 0 or len(text) > LONG else " class=number"
    return f"<td{kind}>{escape(text)}</td>"
