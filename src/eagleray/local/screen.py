"""What a person sees: lines with the time they came at, a job's own output as it is, and one line that moves.

Lines go to one stream and output to another, so that after `eagleray run job.yaml > result.txt` the file holds what the
job printed and nothing else.
"""

import os
from collections.abc import Mapping
from typing import Final, Literal, TextIO

from kubewire.sources import Clock

Tone = Literal["plain", "good", "bad", "warn", "quiet"]

_COLOURS: Final[Mapping[Tone, str]] = {
    "good": "\x1b[32m",
    "bad": "\x1b[31m",
    "warn": "\x1b[33m",
    "quiet": "\x1b[2m",
}
_PLAIN: Final = "\x1b[0m"
_ERASE: Final = "\r\x1b[K"
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_SPINNER: Final = "|/-\\"
_FRAME_SECONDS: Final = 0.1
_NARROWEST: Final = 20
_USUAL: Final = 80


class Screen:
    """One run on a terminal, or plain lines where there is none."""

    def __init__(
        self, lines: TextIO, output: TextIO, clock: Clock, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._lines = lines
        self._output = output
        self._clock = clock
        is_smart = environment.get("TERM", "") != "dumb"
        self._is_live = lines.isatty() and is_smart
        self._has_colour = self._is_live and not environment.get("NO_COLOR")
        # Only output that goes to the same terminal can stand where the moving line is drawn.
        self._shares_terminal = self._is_live and output.isatty()
        self._frames = _SPINNER if _can_show(lines, _SPINNER) else _ASCII_SPINNER
        self._began = clock.monotonic()
        self._stage = ""
        self._stage_began = self._began
        self._frame = 0
        self._is_drawn = False
        self._is_mid_line = False

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self._clock.monotonic() - self._began

    def line(self, text: str, tone: Tone = "plain") -> None:
        """Show a line with the time; whatever in it would steer a terminal is shown as text."""
        self._clear()
        if self._is_mid_line:
            self._output.write("\n")
            self._output.flush()
            self._is_mid_line = False
        colour = _COLOURS.get(tone, "") if self._has_colour else ""
        end = _PLAIN if colour else ""
        self._write(f"{colour}{self.elapsed:7.1f}s  {printable(text)}{end}\n")
        self._draw()

    def output(self, text: str) -> None:
        """Show what a job printed, as it is."""
        if not text:
            return
        self._clear()
        self._output.write(text)
        self._output.flush()
        # A progress bar that goes back to the start of its line owns that line until it is done.
        self._is_mid_line = self._shares_terminal and not text.endswith("\n")
        self._draw()

    def stage(self, text: str) -> None:
        """Say what is going on; on a terminal it is the line that moves, elsewhere nothing is shown."""
        if text != self._stage:
            self._stage, self._stage_began = text, self._clock.monotonic()
            self._draw()

    async def move(self) -> None:
        """Keep the moving line moving until cancelled."""
        while self._is_live:
            await self._clock.sleep(_FRAME_SECONDS)
            self._frame += 1
            self._draw()

    def close(self) -> None:
        """Leave the terminal as it was found."""
        self._stage = ""
        self._clear()

    def _draw(self) -> None:
        if not self._is_live or not self._stage or self._is_mid_line:
            return
        spinner = self._frames[self._frame % len(self._frames)]
        seconds = self._clock.monotonic() - self._stage_began
        text = f"{self.elapsed:7.1f}s {spinner} {printable(self._stage)} ({seconds:.0f} s)"
        text = text[: self._width() - 1]
        dim, end = (_COLOURS["quiet"], _PLAIN) if self._has_colour else ("", "")
        self._write(f"{_ERASE}{dim}{text}{end}")
        self._is_drawn = True

    def _clear(self) -> None:
        if self._is_drawn:
            self._write(_ERASE)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        self._lines.write(text)
        self._lines.flush()

    def _width(self) -> int:
        try:
            columns = os.get_terminal_size(self._lines.fileno()).columns
        except OSError:
            columns = 0
        return max(columns or _USUAL, _NARROWEST)  # some terminals do not know their width


class LabelledOutput:
    """The output of one of several jobs: every line begins with a label, and lines of different jobs never mix."""

    def __init__(self, screen: Screen, label: str) -> None:
        self._screen = screen
        self._label = label
        self._held = ""

    def __call__(self, text: str) -> None:
        *whole, self._held = (self._held + text).split("\n")
        self._screen.output("".join(f"{self._label} | {line}\n" for line in whole))

    def close(self) -> None:
        """Show a last line that was never ended."""
        if self._held:
            self("\n")


def printable(line: str) -> str:
    """Return a line without characters that would steer a terminal: what clusters say may come from anywhere."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
