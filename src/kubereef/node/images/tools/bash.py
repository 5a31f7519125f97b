"""Run what is written for bash by the machine's own shell: options that only bash has are left out.

    bash [-l] [-i] [-e] [-u] [-x] [-o pipefail] [-c [--] COMMAND [NAME] | FILE] [ARGUMENT…]

Commands that start programs, set variables and limits, and test things run as they are; arrays and other words that
only bash knows do not, and the shell says so.
"""

import os
import sys

SHELL = "/bin/sh"
ONLY_BASH = frozenset({"--login", "--norc", "--noprofile", "--posix", "--noediting", "--restricted"})
# A login shell would read the machine's profile, and an interactive one without a terminal complains.
LETTERS_ONLY_BASH = "lrB"
NAMED_ONLY_BASH = frozenset({"pipefail", "posix", "errtrace", "functrace", "history", "braceexpand"})


def translated(arguments: list[str]) -> list[str]:
    """Return the arguments of a POSIX shell that do the same."""
    kept: list[str] = []
    rest = list(arguments)
    while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--", "+"):
        word = rest.pop(0)
        if word in ONLY_BASH:
            continue
        if word.startswith("--"):
            sys.stderr.write(f"bash: {word}: this machine has no bash, and its shell has no such option\n")
            sys.exit(2)
        letters = "".join(letter for letter in word[1:] if letter not in LETTERS_ONLY_BASH)
        # Each `o` of an option takes one of the words that follow.
        for _ in range(letters.count("o")):
            name = rest.pop(0) if rest else ""
            kept += [] if name in NAMED_ONLY_BASH or not name else [f"{word[0]}o", name]
        letters = letters.replace("o", "")
        if letters:
            kept.append(f"{word[0]}{letters}")
    return kept + rest


if __name__ == "__main__":
    os.execv(SHELL, ["bash", *translated(sys.argv[1:])])  # noqa: S606 - a shell is what is asked for
