"""How a trial is evaluated: [objective] of study.toml checked, and the command of one trial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Literal

from jumbo_bo.data.frames import closest
from jumbo_bo.errors import brief, clip
from jumbo_bo.space.space import Params, Space
from jumbo_bo.study import toml

BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


@dataclass(frozen=True)
class Job:
    """How one trial is evaluated."""

    command: tuple[str, ...]  # '{lr}' becomes the value of lr; empty: a person evaluates (jumbo ask / jumbo tell)
    input: Literal["arguments", "json"] = "arguments"  # json: the parameters on standard input
    value: str = "value"  # key of the last JSON line the command prints; a bare number also counts
    workers: int = 1
    timeout: float | None = None  # seconds per attempt
    retries: int = 0
    limited: tuple[str, ...] = ()  # further goals, and quantities with limits: keys of the line with the value
    goals: tuple[str, ...] = ()  # those of them that are goals: without one the trial has failed


def job_of(table: toml.Table, space: Space, limited: Sequence[str] = (), goals: Sequence[str] = ()) -> Job:
    """`goals` where there are several; the first is the value, the others are among the `limited`."""
    if goals and "value" in table.values:
        raise table.error(f"{table.name}.value: the command prints the goals by their names; leave it out")
    table.only(*(f.name for f in fields(Job) if f.name not in ("limited", "goals")))
    command: Any = table.values.get("command")
    if isinstance(command, str):
        listed = ", ".join(f'"{word}"' for word in command.split())
        raise table.wrong("command", f"a list of strings, because no shell is used: command = [{listed}]")
    if not toml.list_of(lambda v: isinstance(v, str))(command) or not command[0]:
        advice = "; without a command, leave [objective] out and use `jumbo ask` and `jumbo tell`"
        raise table.wrong("command", f'a list of strings like ["python", "train.py", "--lr", "{{lr}}"]{advice}')
    for argument in command:
        if set(BRACES.sub("", argument)) & set("{}"):
            raise table.error(
                f"{table.name}.command has a lone brace in {brief(argument)}; write {{{{ or }}}} for a literal brace"
            )
        for name in _placeholders([argument]):
            if name not in space.names:
                raise table.error(
                    f"{table.name}.command has {{{clip(name)}}} in {brief(argument)}, which is not a parameter"
                    f"{closest(name, space.names)}; the parameters are {', '.join(space.names)}; "
                    "write a literal brace twice"
                )
        _check_optional(table, argument, space)
    return Job(
        tuple(command),
        table.take("input", toml.one_of("arguments", "json"), Job.input),
        table.take("value", toml.TEXT, goals[0] if goals else Job.value),
        table.take("workers", toml.whole(1), Job.workers),
        table.take("timeout", toml.POSITIVE, Job.timeout),
        table.take("retries", toml.whole(0), Job.retries),
        tuple(limited),
        tuple(goals[1:]),
    )


def render(job: Job, params: Params) -> list[str]:
    """The command of one trial, ready to be started without a shell."""

    def put(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else _word(params[match[1]])  # '{{' is '{'

    command = [BRACES.sub(put, argument) for argument in _applying(job.command, params)]
    if job.input == "arguments" and not _placeholders(job.command):
        command += [word for name, value in params.items() for word in _option(f"--{name}", value)]
    return command


def _check_optional(table: toml.Table, argument: str, space: Space) -> None:
    """An argument with a parameter that may not exist is left out then, so it must not hold another one."""
    names = dict.fromkeys(_placeholders([argument]))
    if len(names) > 1 and (found := [name for name in names if name in space.conditions]):
        raise table.error(
            f"{table.name}.command has {{{clip(found[0])}}} in {brief(argument)} together with other parameters, and "
            f"it exists only when {space.conditions[found[0]]}; give it an argument of its own"
        )


def _applying(command: Sequence[str], params: Params) -> list[str]:
    """Without the arguments whose parameter this trial does not have. An option such as --depth before one that is
    nothing but its value goes with it."""
    kept: list[str] = []
    for argument in command:
        names = _placeholders([argument])
        if all(name in params for name in names):
            kept.append(argument)
        elif argument == f"{{{names[0]}}}" and kept and kept[-1].startswith("-") and not _placeholders(kept[-1:]):
            kept.pop()
    return kept


def _option(name: str, value: Any) -> list[str]:
    """Two words. A text like '-rf' would be taken for an option of its own, so it shares a word with its name."""
    word = _word(value)
    return [f"{name}={word}"] if isinstance(value, str) and word.startswith("-") else [name, word]


def _placeholders(command: Sequence[str]) -> list[str]:
    return [m[1] for argument in command for m in BRACES.finditer(argument) if m[1] is not None]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # argparse takes '-1e-05' for an option, '-0.00001' for a number
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) and value < 0 else str(value)
