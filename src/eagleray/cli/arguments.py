"""Arguments that several commands take."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_place(parser: "argparse.ArgumentParser", what: str = "a namespace") -> None:
    """Have a command ask which cluster and namespace are meant."""
    parser.add_argument("-n", "--namespace", default="", help=f"{what}; by default the context's")
    parser.add_argument("--kubeconfig", default="", help="a kubeconfig; by default as kubectl finds it")
    parser.add_argument(
        "--context", default="", help="a context of the kubeconfig; by default the current one"
    )


class Actions:
    """The actions of a command, each of which speaks to a cluster."""

    def __init__(self, parser: "argparse.ArgumentParser") -> None:
        self._formatter = parser.formatter_class
        self._added = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(self, name: str, summary: str) -> "argparse.ArgumentParser":
        """Return the parser of a new action."""
        one = self._added.add_parser(name, help=summary, description=summary, formatter_class=self._formatter)
        add_place(one)
        return one
