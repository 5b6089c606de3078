"""What is shown while `jumbo run` is at work: for people, and with --json for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from jumbo_bo.cli.interrupts import Interrupts
from jumbo_bo.cli.view import as_json, duration, number, settings
from jumbo_bo.errors import printable

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from jumbo_bo.data.goals import Goal
    from jumbo_bo.data.limits import Limit
    from jumbo_bo.runner.coordinator import Ending, Running

MOST_RUNNING = 8  # lines about running trials
NONE_MEETS = "none meets the limits yet"
LEAST_FINISHED = 2  # trials of this run from which the time left is estimated


@dataclass
class Pace:
    """How long a trial takes in this run, from the time between the first look and the last result."""

    start: float | None = None
    last: float = 0.0
    n: int = 0

    def finished(self, now: float) -> None:
        self.n, self.last = self.n + 1, now

    def left(self, missing: int, now: float) -> float | None:
        """Seconds until `missing` more are finished, None when it is too early to tell."""
        if self.start is None:
            self.start = now
        if self.n < LEAST_FINISHED:
            return None
        return max(0.0, missing * (self.last - self.start) / self.n - (now - self.last))


class Progress:
    """For each finished trial what it was and why it was tried; in a terminal, below them what is going on."""

    def __init__(
        self,
        screen: Console,
        interrupts: Interrupts | None = None,
        workers: int = 1,
        limits: Sequence[Limit] = (),
        goals: Sequence[Goal] = (),
    ) -> None:
        self.screen, self.live = screen, Live(console=screen, auto_refresh=False, transient=True)
        self.interrupts, self.workers = interrupts or Interrupts(), workers
        self.limits, self.goals = limits, goals
        self.pace, self.best = Pace(), ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def note(self, text: str) -> None:
        self.screen.print(text, style="dim")

    def finished(self, trial: FrozenTrial, best: FrozenTrial | None) -> None:
        self.pace.finished(time.monotonic())
        why = trial.user_attrs.get("why", "")
        if trial.value is None:
            self.screen.print(f"trial {trial.number}: failed, {settings(trial)}", style="yellow")
            why = trial.user_attrs.get("error", "")
        elif self.goals:
            found, seconds = outcome(trial, self.goals, self.limits), f"{trial.user_attrs.get('seconds', 0.0):.1f} s"
            place, style = ("behind the front", "") if best is None else ("on the front", "green")
            self.screen.print(f"trial {trial.number}: {found}, {place}, {seconds}: {settings(trial)}", style=style)
        else:
            top = trial if best is None and not self.limits else best
            improved, others = top is not None and top.number == trial.number, [top.value or 0.0] if top else []
            self.best = f"best {number(*others)} in trial {top.number}" if top else NONE_MEETS
            so_far = f"best so far {number(*others, trial.value)}" if top else NONE_MEETS
            so_far = "the best so far" if improved else so_far
            seconds = f"{trial.user_attrs.get('seconds', 0.0):.1f} s"
            shown = result(trial, self.limits, *others)
            self.screen.print(
                f"trial {trial.number}: {shown}, {so_far}, {seconds}: {settings(trial)}",
                style="green" if improved else "",
            )
        if why:
            indented(self.screen, why)

    def tick(self, running: Sequence[Running], finished: int, limit: int) -> None:
        self.interrupts.heed()
        left = self.pace.left(limit - finished, time.monotonic())
        if not self.screen.is_terminal or self.screen.is_dumb_terminal:
            return
        about = [f"{finished} of {limit} trials done", self.best]
        about += [f"about {duration(left)} left"] if left is not None and finished < limit else []
        lines = [", ".join(filter(None, about)), *self._now(running, finished, limit)]
        self.live.start()
        texts = (Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in lines)
        self.live.update(Group(*texts), refresh=True)

    def _now(self, running: Sequence[Running], finished: int, limit: int) -> Iterator[str]:
        now = time.time()
        for r in running[:MOST_RUNNING]:
            yield f"  trial {r.trial.number}, running for {duration(now - r.since)}: {settings(r.trial)}"
        if len(running) > MOST_RUNNING:
            yield f"  and {len(running) - MOST_RUNNING} more"
        elif len(running) < self.workers and finished + len(running) < limit:
            yield "  choosing the next trial ..."


def outcome(trial: FrozenTrial, goals: Sequence[Goal], limits: Sequence[Limit] = ()) -> str:
    """What was found: the value, or that of every goal."""
    from jumbo_bo.data.limits import in_words
    from jumbo_bo.data.readers import measured
    from jumbo_bo.fronts import values_of

    if not goals:
        return result(trial, limits)
    also = in_words(limits, measured(trial))
    each = ", ".join(f"{name} {number(value)}" for name, value in values_of(trial, goals).items())
    return each + (f" ({also})" if also else "")


def result(trial: FrozenTrial, limits: Sequence[Limit], *others: float) -> str:
    """The value, with digits that tell it from others, and what was measured with it."""
    from jumbo_bo.data.limits import in_words
    from jumbo_bo.data.readers import measured

    also = in_words(limits, measured(trial))
    return number(trial.value or 0.0, *others) + (f" ({also})" if also else "")


def indented(screen: Console, text: str) -> None:
    """Below the line that it belongs to, whole: wrapped in a terminal, on one line in a file."""
    from rich.padding import Padding

    screen.print(Padding(Text(printable(text), "dim"), (0, 0, 0, 2)) if screen.is_terminal else f"  {text}")


@dataclass
class Events:
    """One JSON object per line for everything that happens."""

    interrupts: Interrupts
    goals: Sequence[Goal] = ()
    started: set[tuple[int, str]] = field(default_factory=set)  # trial, attempt

    def note(self, text: str) -> None:
        _event("note", text=text)

    def finished(self, trial: FrozenTrial, best: FrozenTrial | None) -> None:
        told = {key: trial.user_attrs[key] for key in ("seconds", "error") if key in trial.user_attrs}
        event = "failed" if trial.value is None else "finished"
        found = {"on_front": best is not None} if self.goals else {"best": _best(best)}
        _event(event, **_about(trial), value=self._value(trial), **told, **found)

    def _value(self, trial: FrozenTrial) -> float | dict[str, float] | None:
        from jumbo_bo.fronts import values_of

        return (values_of(trial, self.goals) or None) if self.goals else trial.value

    def tick(self, running: Sequence[Running], finished: int, limit: int) -> None:
        self.interrupts.heed()
        for r in running:
            if (which := (r.trial.number, r.folder.name)) not in self.started:
                self.started.add(which)
                _event("started", **_about(r.trial), attempt=r.folder.name, finished=finished, limit=limit)

    def ended(self, ending: Ending) -> None:
        chance = {"chance": ending.chance} if ending.reason == "stopped" else {}
        found: dict[str, Any] = {"best": _best(ending.best)}
        if self.goals:
            front = [{"trial": t.number, "value": self._value(t), "params": t.params} for t in ending.front]
            found = {"front": front}
        _event("ended", reason=ending.reason, finished=ending.finished, **chance, **found)


def _event(event: str, **about: Any) -> None:
    typer.echo(as_json({"event": event, **about}))


def _about(trial: FrozenTrial) -> dict[str, Any]:
    return {"trial": trial.number, "params": trial.params, "why": trial.user_attrs.get("why")}


def _best(trial: FrozenTrial | None) -> dict[str, Any] | None:
    return None if trial is None else {"trial": trial.number, "value": trial.value, "params": trial.params}
