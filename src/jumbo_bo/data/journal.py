"""Optuna's journal files, made to survive a process that is killed, or a disk that is full, in the middle of a line."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal._file import get_lock_file

_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class Journal(JournalFileBackend):
    """A last line without an end was never acknowledged to anybody. Readers do not see it, the next writer drops it."""

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        try:
            yield from super().read_logs(log_number_from)
        except json.JSONDecodeError as error:
            raise StorageInternalError(f"{self._file_path} is damaged: {_first_bad_line(self._file_path)}") from error

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        what = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        with get_lock_file(self._lock):
            end = self._whole_lines()
            with open(self._file_path, "r+b", buffering=0) as file:
                try:
                    file.truncate(end)
                    file.seek(end)
                    while what:
                        what = what[file.write(what) :]
                    os.fsync(file.fileno())
                except OSError as error:
                    os.truncate(self._file_path, end)  # all of it or nothing
                    raise StorageInternalError(f"{self._file_path}: {error.strerror}") from error

    def _whole_lines(self) -> int:
        """Where the last whole line ends."""
        with open(self._file_path, "rb") as file:
            size = end = file.seek(0, os.SEEK_END)
            while end:
                start = max(0, end - 65_536)
                file.seek(start)
                found = file.read(end - start).rfind(b"\n")
                if found >= 0:
                    end = start + found + 1
                    break
                end = start
        if end < size:
            _logger.warning(
                f"{self._file_path} ended in the middle of a line, as a killed process or a full disk leaves it; these "
                f"{size - end} bytes are dropped. Everything before them is kept."
            )
        return end


def _first_bad_line(path: str) -> str:
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        try:
            json.loads(line)
        except ValueError:
            return f"line {number} is not JSON"
    return "a line is not JSON"
