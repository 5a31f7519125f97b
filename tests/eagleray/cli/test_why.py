"""The `why` command: what it takes, and how it ends when it cannot ask."""

import pytest

from eagleray.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["hello"], "'hello' is not KIND/NAME", id="a name without a kind"),
        pytest.param(["raycluster/"], "is not KIND/NAME", id="a kind without a name"),
        pytest.param(["raycluster/.."], "is not KIND/NAME", id="a name that no object has"),
        pytest.param(["pod/hello"], "there is no kind 'pod'", id="a kind that is not Ray's"),
        pytest.param(["raycluster/a", "-n", "A/B"], "'A/B' is no namespace", id="a namespace that is none"),
        pytest.param(["raycluster/a", "--context", "x"], "there is no context 'x'", id="an unknown context"),
        pytest.param(["rayclusters.ray.io/a"], "127.0.0.1:1", id="a server that does not answer"),
    ],
)
def test_what_cannot_be_asked_ends_with_2_and_a_sentence(arguments, sentence, tmp_path, capsys):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    assert main(["why", *arguments, "--kubeconfig", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("eagleray why: ")
    assert sentence in shown.err
    assert len(shown.err.splitlines()) == 1


# Nothing listens at port 1.
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
