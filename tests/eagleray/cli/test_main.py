"""The command finds its subcommands and says what it knows."""

import os
import subprocess
import sys

import pytest

from eagleray import __version__
from eagleray.cli.main import COMMANDS, main


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name} " in shown
        assert command.summary in shown


def test_nothing_at_all_shows_the_help(capsys):
    assert main([]) == 0
    assert "Usage: eagleray" in capsys.readouterr().out


def test_the_version_is_told(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"eagleray {__version__}\n"


def test_a_mistyped_command_is_answered_with_the_nearest(capsys):
    assert main(["validat"]) == 2
    assert "did you mean 'validate'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"usage: eagleray {name}" in capsys.readouterr().out


def test_the_help_imports_no_command():
    program = (
        "import sys; from eagleray.cli.main import main; main(['--help']); "
        "print(sorted(name for name in sys.modules if name.startswith(('eagleray', 'kubewire', 'yaml', 'argparse'))))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "['eagleray', 'eagleray.cli', 'eagleray.cli.main']"


def test_a_reader_who_has_seen_enough_ends_it_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        command = [sys.executable, "-m", "eagleray.cli.main", "explain", "raycluster.spec", "--recursive"]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
