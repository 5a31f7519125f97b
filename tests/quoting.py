"""YAML for tests that want back exactly what they wrote."""

import yaml


class _QuotingDumper(yaml.CSafeDumper):
    """Quotes every string, because PyYAML and kubectl disagree on which plain words are text."""


_QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def quoted_yaml(value: object) -> str:
    """Return a value as YAML in which no string can be taken for anything else."""
    text: str = yaml.dump(value, Dumper=_QuotingDumper, allow_unicode=True)
    return text
