"""`jumbo serve`: options; the page is made in jumbo_bo/serve/."""

from __future__ import annotations

from typing import Annotated

import typer

from jumbo_bo.cli.run import StudyPath
from jumbo_bo.cli.view import explained, usable
from jumbo_bo.extras import require


def serve(
    study: StudyPath,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 8090,
    host: Annotated[
        str, typer.Option(help="Where it listens. Anything but this machine needs --allow-network.")
    ] = "127.0.0.1",
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help="Other machines may connect, without encryption.")
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page in a browser.")] = False,
) -> None:
    """Show a page in the browser for a study that people run: the next experiments, their results, the report.

    Several people can use it at once. Only this machine can reach it, and only with the address that is printed.
    Everything that is entered is in the study at once. Ctrl-C stops the page.

    Exit codes: 1 something is wrong and the message says what, 130 stopped.
    """
    with explained("serve", f"All that was entered is stored. Go on with: jumbo serve {study}"), usable(study):
        require("this", "flask", "waitress")
        from jumbo_bo.serve.server import check_host
        from jumbo_bo.serve.server import serve as run

        check_host(host, allow_network)
        run(study, host, port, not no_browser, typer.echo)
