"""What the pages about installing name is there."""

import re

import pytest
import yaml

from tests.conftest import REPOSITORY
from tests.packaging.helm import OPERATOR

PAGES = ("docs/installing.md", "docs/migrating-from-kuberay.md")


@pytest.fixture(params=PAGES)
def page(request):
    return (REPOSITORY / request.param).read_text()


def test_the_files_that_a_page_names_are_there(page):
    named = set(re.findall(r"\b(?:config|charts|requirements)/[\w./-]*\w", page))
    assert named
    assert {path for path in named if not (REPOSITORY / path).exists()} == set()


def test_the_pages_that_a_page_leads_to_are_there(page):
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", page):
        assert (REPOSITORY / "docs" / target).is_file(), target


def test_the_folders_of_the_table_are_those_of_the_manifests():
    page = (REPOSITORY / "docs/installing.md").read_text()
    table = page[page.index("| In `config/`") : page.index("## Choices")]
    named = set(re.findall(r"`([\w-]+)`|`components/([\w-]+)`", table))
    components = {path.name for path in (REPOSITORY / "config" / "components").iterdir()}
    assert components <= {plain or component for plain, component in named}


def test_the_values_that_a_page_names_are_values_of_the_chart(page):
    text = (OPERATOR / "values.yaml").read_text()
    values = yaml.safe_load(text)
    named = set(re.findall(r"(?:--set |`)((?:[a-z]\w*)(?:\.[a-z]\w*)*)=", page))
    assert named
    for name in named:
        found = values
        for step in name.split("."):
            # Values without a default are there as comments.
            if isinstance(found, dict) and step in found:
                found = found[step]
            else:
                assert f"# {step}: " in text, name
