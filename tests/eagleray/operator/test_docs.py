"""The page about the operator says what the code does."""

from pathlib import Path

from eagleray.runtime.options import OPTIONS

PAGE = (Path(__file__).parents[3] / "docs" / "operator.md").read_text()


def row(option):
    def code(text):
        return f"`{text}`" if text else ""

    default = option.default if option.default not in ("", 0, (), {}) else ""
    shown = str(default).lower() if isinstance(default, bool | str) else f"{default:g}" if default else ""
    return f"| {code(option.flag)} | {code(option.field)} | {code(shown)} | {option.help} |"


def test_the_table_of_flags_is_the_codes():
    rows = [line for line in PAGE.splitlines() if line.startswith(("| `", "|  | `"))]
    assert rows == [row(option) for option in OPTIONS.values()]
