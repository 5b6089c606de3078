"""The report as a file: escaped, nothing loaded, readable by everyone, the same for the same study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from report_pages import FEW, IDS, SPACE, WORDS, Reader, explanation, full_page, plots, study, trial

from jumbo_bo.neighbours import OldRun
from jumbo_bo.report import page, write
from jumbo_bo.space.space import Space
from jumbo_bo.studies import WHY
from jumbo_bo.transfer import TaskTransfer, TransferReport

NASTY = "</script><script>alert('1')</script> & \"q\" ünï %{x} --old"


def test_everything_is_escaped() -> None:
    space = Space({NASTY: FloatDistribution(0, 1), "c": CategoricalDistribution((NASTY, "x"))})
    reasons = explanation(nearest=(OldRun(NASTY, {NASTY: 0.1, "c": NASTY}, 1.0, 0.1),))
    trials = [trial(i, 0.1 * i, reasons, space=space) for i in range(4)]
    trials[0].user_attrs[WHY] = NASTY
    task = TransferReport((TaskTransfer(NASTY, 0.5, 0.25, 0.9),), 0.25, 0.5, 9, NASTY)
    html = page(NASTY, space, "minimize", trials, None, task)
    reader = Reader(html)
    assert len(reader.scripts) == 3  # data, plotly, ours
    assert "alert(" not in reader.scripts[1] + reader.scripts[2]
    assert NASTY in reader.words
    labels = [word["text"] for word in plots(html)["plot-parallel"]["layout"]["annotations"]]
    assert not any("<" in label for label in labels)  # Plotly reads labels as HTML
    assert any("&lt;/script&gt;" in label for label in labels)


def test_nothing_is_loaded() -> None:
    reader = Reader(full_page())
    assert not [attrs for _, attrs in reader.tags if "src" in attrs or "srcset" in attrs]
    assert all(str(attrs["href"]).startswith("#") for _, attrs in reader.tags if "href" in attrs)
    assert not reader.all("link")
    policy = next(m["content"] for m in reader.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'")
    style = full_page().split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import|@font-face", style)


def test_the_page_can_be_read_by_everyone() -> None:
    reader = Reader(full_page())
    assert reader.all("html") == [{"lang": "en"}]
    assert "widgets" in reader.words
    drawn = [attrs for attrs in reader.all("div") if attrs.get("class") == "plot"]
    assert len(drawn) == len(IDS) - len(WORDS) + SPACE.d - 1
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in drawn)
    targets = {attrs["id"] for _, attrs in reader.tags if "id" in attrs}
    assert {str(a["href"])[1:] for a in reader.all("a")} <= targets
    assert len(targets) == sum("id" in attrs for _, attrs in reader.tags)


def contrast(a: str, b: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((light(a), light(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_colours_stand_out(mode: int) -> None:
    css = full_page().split("<style>")[1].split("</style>")[0]
    colours = dict(re.findall(r"--(\w+): (#\w{6})", css.split(":root {")[mode + 1].split("}")[0]))
    for text in ("ink", "muted", "focus", "bad"):
        assert contrast(colours[text], colours["page"]) >= 4.5, text
        assert contrast(colours[text], colours["card"]) >= 4.5, text
    for mark in ("rank1", "rank2"):
        assert contrast(colours[mark], colours["page"]) >= 3, mark
    for bar in ("old", "new"):  # with numbers inside
        assert contrast(colours[bar], colours["page"]) >= 4.5, bar


def test_the_same_study_gives_the_same_page() -> None:
    assert full_page() == full_page()
    trials = study(FEW)
    assert page("w", SPACE, "minimize", trials) == page("w", SPACE, "minimize", trials[::-1])
    assert "2024-05-01 12:02" in Reader(page("w", SPACE, "minimize", trials)).words


def test_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write(path, "ü\n")
    assert path.read_bytes() == "ü\n".encode()
    assert list(tmp_path.iterdir()) == [path]
