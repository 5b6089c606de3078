"""The command `jumbo`: reads options, shows results. The work is done elsewhere and imported when it is needed.

One file per group of commands; `view.py` is what they share.

May import: space, data, learning, study, jumbo_bo, report, runner, bench.
"""

from __future__ import annotations

from typing import Annotated

import typer

from jumbo_bo.cli import demo, find, lab, mcp, report, run, study
from jumbo_bo.cli.view import explained, usable

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # a plain traceback, which fits a bug report and shows no values
    help="Bayesian optimization that learns from your old runs. First time here? Try `jumbo demo`.",
    epilog="Examples:\n\n- `jumbo init runs.csv`\n\n- `jumbo demo --target naval`\n\n"
    "- `jumbo bench fcnet-dt --problems protein --seeds 5`",
)


def main() -> None:
    app(prog_name="jumbo")


def _version(wanted: bool) -> None:
    if wanted:
        import jumbo_bo

        typer.echo(f"jumbo-bo {jumbo_bo.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command(epilog=study.INIT_EXAMPLES)(study.init)
app.command("import", epilog=study.IMPORT_EXAMPLES)(study.import_)
app.command(epilog=find.FIND_EXAMPLES)(find.find)
app.command(epilog="Examples: `jumbo run study.toml`, `jumbo run study.toml --trials 100`")(run.run)
app.command(epilog="Examples: `jumbo ask study.toml -n 4`, `jumbo ask study.toml --fix optimizer=sgd`")(lab.ask)
# A negative value is not an option.
app.command(
    epilog="Examples: `jumbo tell study.toml 3 0.71`, `jumbo tell study.toml 4 --failed`, "
    "`jumbo tell study.toml < results.jsonl`, `jumbo tell study.toml 3 0.17 --replace`",
    context_settings={"ignore_unknown_options": True},
)(lab.tell)
app.command(
    epilog="Examples: `jumbo forget study.toml 3 4 --reason 'the pump leaked'`, `jumbo forget study.toml 3 --restore`"
)(lab.forget)
app.command(epilog="Example: `jumbo explain study.toml 3`")(lab.explain)
app.command(epilog="Examples: `jumbo status study.toml`, `jumbo status study.toml --json`")(run.status)
app.command(epilog="Example: `jumbo dashboard study.toml --port 8081`")(run.dashboard)
app.command(epilog="Examples: `jumbo report study.toml`, `jumbo report study.toml --output friday.html`")(report.report)
app.command(epilog="Examples: `jumbo mcp`, `jumbo mcp ~/experiments`")(mcp.mcp)
app.command(epilog="Example: `jumbo demo --target naval --trials 20`")(demo.demo)


# --help is answered by the command that everything is forwarded to
@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the paper's experiments on real data and make tables and figures from the results.

    Example: `jumbo bench fcnet-dt --problems protein --seeds 5`
    """
    from jumbo_bo.bench.__main__ import app as experiments

    with explained("bench"), usable("a file of the experiment"):
        experiments(args=context.args, prog_name="jumbo bench")
