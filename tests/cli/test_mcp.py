"""`jumbo mcp`: the SDK's own client talks to it over real standard input and output. docs/agents.md has a whole
conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from widgets import STUDY, jumbo

from jumbo_bo.cli.mcp import study_in
from jumbo_bo.errors import UserError

PROGRAM = [sys.executable, "-c", "from jumbo_bo.cli import main; main()", "mcp"]
Call = Callable[..., Awaitable[Any]]


def served(conversation: Callable[[Call], Awaitable[None]], *arguments: str) -> None:
    async def main() -> None:
        parameters = StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], *arguments], env=dict(os.environ))
        async with Client(parameters) as client:

            async def call(tool: str, **given: Any) -> Any:
                result = await client.call_tool(tool, given)
                if result.is_error:
                    return result.content[0].text.removeprefix(f"Error executing tool {tool}: ")
                assert json.loads(result.content[0].text) == result.structured_content
                return result.structured_content

            await conversation(call)

    anyio.run(main)


def as_printed(*arguments: str) -> Any:
    result = jumbo(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_tools_return_what_the_commands_print(folder: Path) -> None:
    (folder / "runs.csv").write_text("lr,units,loss\n" + "".join(f"{0.001 * i},32,{i}\n" for i in range(1, 20)))
    (folder / "study.toml").write_text(STUDY + '\n[[history]]\nfiles = "runs.csv"\nobjective = "loss"\n')

    async def conversation(call: Call) -> None:
        asked = await call("ask", n=2, fix={"units": 48})
        first, second = asked["suggestions"]
        assert [first["params"]["units"], second["params"]["units"]] == [48, 48]
        assert await call("ask", again=True) == {"suggestions": [first, second], "notes": []}
        told = await call(
            "tell",
            results=[{"trial": 0, "value": 0.5}, first | {"trial": 1, "failed": True, "params": second["params"]}],
        )
        assert [trial["state"] for trial in told["stored"]] == ["complete", "fail"]
        own = await call("tell", results=[{"params": {"lr": 0.01, "units": 32}, "value": 0.25}])
        assert own["best"]["trial"] == 2
        replaced = await call("tell", results=[{"trial": 2, "value": 0.75}], replace=True, reason="comma")
        assert replaced["corrections"][0]["was"] == 0.25
        assert await call("status") == as_printed("status", "study.toml")
        assert await call("explain", trial=0) == as_printed("explain", "study.toml", "0")
        assert await call("import") == as_printed("import", "study.toml")

    served(conversation, ".")


def test_errors_are_those_of_the_commands(folder: Path) -> None:
    def line(*arguments: str) -> str:
        result = jumbo(*arguments)
        assert result.exit_code == 1
        return result.stderr.partition(": ")[2].strip()

    async def conversation(call: Call) -> None:
        assert await call("status") == line("status", "study.toml")
        await call("ask")
        assert await call("explain", trial=9) == line("explain", "study.toml", "9")
        assert await call("import") == line("import", "study.toml")
        assert await call("tell", results=[{"trial": 9, "value": 1}]) == "line 1: " + line(
            "tell", "study.toml", "9", "1"
        )
        assert await call("ask", fix={"units": 17}) == line("ask", "study.toml", "--fix", "units=17")
        assert "n is 0, expected at least 1" in await call("ask", n=0)
        assert "there are no results" in await call("tell", results=[])
        assert "neither 'trial' nor 'params'" in await call("tell", results=[{"value": 1}])
        assert "validation error" in await call("tell", results=3)
        (folder / "study.toml").write_text("nothing")
        assert "line 1" in await call("status")
        (folder / "study.toml").write_text(STUDY)
        assert (await call("status"))["counts"] == {"running": 1}, "it goes on after mistakes"

    served(conversation, ".")


def test_nothing_outside_of_the_folder(folder: Path) -> None:
    inside = folder / "inside"
    inside.mkdir()
    (inside / "mine.toml").write_text(STUDY)
    (inside / "link.toml").symlink_to("../study.toml")
    (inside / "deeper").symlink_to("..")
    (inside / "notes.txt").write_text("secret")

    async def conversation(call: Call) -> None:
        assert (await call("ask", study="mine.toml"))["suggestions"]
        for name in (
            "../study.toml",
            "link.toml",
            "deeper/study.toml",
            str(folder / "study.toml"),
            "inside/../../x.toml",
        ):
            assert "outside of the folder" in await call("status", study=name), name
        assert "not a study file" in await call("status", study="notes.txt")
        assert "does not exist" in await call("status", study="missing.toml")

    served(conversation, "inside")


def test_one_study_file(folder: Path) -> None:
    (folder / "other.toml").write_text(STUDY)
    for name in ("study.toml", str(folder / "study.toml")):
        assert study_in(Path("study.toml"), name) == Path("study.toml")
    with pytest.raises(UserError, match="not the study file that is served"):
        study_in(Path("study.toml"), "other.toml")

    async def conversation(call: Call) -> None:
        assert (await call("ask"))["suggestions"], "it is the default"

    served(conversation, "study.toml")


def test_standard_output_is_the_protocols(folder: Path) -> None:
    """Line by line, as a client sees it; what goes wrong is not printed there either."""
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    ask = {"name": "ask", "arguments": {"study": "study.toml"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": ask},
    ]
    with subprocess.Popen(
        PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as p:
        assert p.stdin is not None
        assert p.stdout is not None
        for message in messages:
            p.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            p.stdin.flush()
        answers = [json.loads(p.stdout.readline()) for _ in range(2)]
        rest, _ = p.communicate()
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["result"]["serverInfo"]["name"] == "jumbo"
    assert not answers[1]["result"].get("isError")
    assert rest == ""
    assert p.returncode == 0


def test_before_it_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nowhere does not exist" in jumbo("mcp", "nowhere").stderr
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = jumbo("mcp")
    assert result.exit_code == 1
    assert "jumbo mcp needs mcp, which is not installed; run: pip install 'jumbo-bo[mcp]'" in result.stderr
