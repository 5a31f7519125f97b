"""The recipe of the container image: pinned, without root, and with the command that manifests and charts call."""

import re
import shlex

import pytest
import yaml

from eagleray import __version__
from scripts.locks import image_locks
from tests.conftest import REPOSITORY
from tests.packaging.helm import OPERATOR

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()


def instructions():
    """Return the instructions of the recipe as (name, argument), each in one line and without comments."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def arguments(name):
    return [argument for found, argument in instructions() if found == name]


def last_stage():
    """Return the instructions that make the image itself."""
    made = instructions()
    begins = max(number for number, (name, _) in enumerate(made) if name == "FROM")
    return made[begins:]


def test_every_stage_begins_with_one_exact_version():
    bases = {argument.split()[0] for argument in arguments("FROM")}
    assert len(bases) == 1, "an environment that is carried over needs the same Python at the same place"
    (base,) = bases
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-[a-z]+", base)


def test_the_image_runs_as_somebody_without_rights():
    users = [argument for name, argument in last_stage() if name == "USER"]
    assert users == ["65532:65532"]


def test_nothing_is_fetched_that_is_not_pinned():
    assert arguments("ADD") == []
    text = " ".join(arguments("RUN"))
    assert not re.search(r"\b(curl|wget|apt-get|git)\b", text)
    for command in re.findall(r"pip (?:install|wheel) [^&]*", text):
        words = shlex.split(command)
        assert "--require-hashes" in words or "--no-deps" in words, command
        # What is not in a lock is taken from this checkout alone.
        assert "--require-hashes" in words or "--no-index" in words or "--no-build-isolation" in words, (
            command
        )


def test_the_locks_of_the_image_have_the_versions_of_the_lock_that_is_tested():
    tested = (REPOSITORY / "requirements" / "dev.lock").read_text()
    for path, text in image_locks(REPOSITORY).items():
        assert (REPOSITORY / path).read_text() == text
        pinned = re.findall(r"^\S+==\S+", text, re.MULTILINE)
        assert pinned
        assert set(pinned) <= set(re.findall(r"^\S+==\S+", tested, re.MULTILINE))
        assert text.count("--hash=sha256:") >= len(pinned)


@pytest.mark.parametrize("name", ["aiohttp", "cryptography", "msgspec", "pyyaml", "tzdata", "yarl"])
def test_what_the_operator_imports_is_in_the_image(name):
    assert f"\n{name}==" in (REPOSITORY / "requirements" / "image.lock").read_text()


@pytest.mark.parametrize("name", ["pytest", "ruff", "hypothesis", "kubernetes", "pip"])
def test_what_only_developers_need_is_not(name):
    assert f"\n{name}==" not in (REPOSITORY / "requirements" / "image.lock").read_text()


def test_the_command_of_manifests_and_charts_is_in_the_image():
    values = yaml.safe_load((OPERATOR / "values.yaml").read_text())
    assert values["operatorCommand"] == "/manager"
    assert ("ENTRYPOINT", '["/manager"]') in last_stage()
    assert ("COPY", "--from=build /manager /manager") in last_stage()
    assert 'eagleray operator "$@"' in DOCKERFILE


def test_the_ports_are_those_of_the_operator():
    assert arguments("EXPOSE") == ["8080 8082 9443"]


def test_the_label_has_the_version_of_the_product():
    (label,) = arguments("LABEL")
    assert f'image.version="{__version__}"' in label
    assert f"eagleray/operator:{__version__}" in DOCKERFILE


def test_only_what_the_recipe_copies_is_sent_to_the_builder():
    lines = [
        line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if not line.startswith("#")
    ]
    assert lines[0] == "*"
    sent = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        source
        for argument in arguments("COPY")
        if "--from" not in argument
        for source in argument.split()[:-1]
    }
    assert sent == copied
    assert all((REPOSITORY / path).exists() for path in sent)
