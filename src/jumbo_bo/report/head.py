"""What every page begins with: it loads nothing from elsewhere and follows the reader's choice of light or dark."""

from __future__ import annotations

from html import escape
from importlib.resources import files


def head(title: str, policy: str, style: str = "") -> str:
    """Up to the body. `policy` is the content security policy, `style` is added to that of the reports."""
    css = files("jumbo_bo.report").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>
{css}{style}</style>
</head>"""
