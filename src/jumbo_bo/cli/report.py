"""`jumbo report`: options and what is shown; the page is made by jumbo_bo/report/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from jumbo_bo.cli.view import console, explained, usable
from jumbo_bo.errors import UserError


def report(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, for example study.toml.")],
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    without_old_runs: Annotated[
        bool,
        typer.Option(
            "--without-old-runs", help="Do not read the old runs: faster, but without the map and the transfer report."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Write one HTML page about the study: the best trial, all others with reasons, and what the old runs contributed.

    You can write it at any time, even while the study runs. The page needs no network: mail it, open it in a
    browser.
    """
    with explained("report", in_json=as_json), usable(study):
        output = output.expanduser()  # a shell leaves --output=~/page.html as it is
        if not output.absolute().parent.is_dir():
            raise UserError(f"the folder {output.parent} of --output does not exist; create it first")
        if output.is_dir():
            raise UserError(f"--output {output} is a folder; name a file in it, for example {output / 'report.html'}")
        from jumbo_bo.report import page, write
        from jumbo_bo.report.verdict import Stop
        from jumbo_bo.runner.book import opened_book
        from jumbo_bo.runner.build import build_optimizer
        from jumbo_bo.studies import follow
        from jumbo_bo.study.study_file import load
        from jumbo_bo.transfer import transfer

        file = load(study)
        with opened_book(file, create=False) as book:
            trials, kept = book.all_trials(), book.kept()
            left_out = dict.fromkeys(book.corrections().forgotten, "forgotten") | kept.left_out
        about = file.name, file.space, file.direction, trials
        several = file.limits, file.goals, file.reference
        if without_old_runs:
            text = page(*about, None, None, None, left_out, *several)
        else:
            note = console(stderr=True).print
            optimizer = build_optimizer(file, file.trials, note, whole=True, earlier=kept.old_runs)
            optimizer = follow(optimizer, kept.trials)
            stop = Stop(file.stop.gain, file.stop.chance) if file.stop else None
            moved = None if file.goals else transfer(optimizer)  # of several goals, each has its own
            text = page(*about, optimizer, moved, stop, left_out, *several)
        write(output, text)
        size = output.stat().st_size / 1e6
        if as_json:
            typer.echo(json.dumps({"written": str(output), "trials": len(trials)}, indent=1))
            return
        console().print(f"Wrote {output} ({size:.1f} MB, {len(trials)} trials); open it in a browser.")
