"""The `cron` command: what it takes, what it does without a cluster, and how it ends when it cannot ask."""

import pytest

from eagleray.cli.main import main

# Nothing listens at port 1.
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["next"], "name a RayCronJob, or give a --schedule", id="nothing to look at"),
        pytest.param(
            ["next", "a", "--schedule", "@daily"],
            "name a RayCronJob, or give a --schedule",
            id="two things to look at",
        ),
        pytest.param(["next", "a", "-c", "0"], "choose a number from 1 to 1000", id="no runs"),
        pytest.param(["next", "a", "-c", "1001"], "choose a number from 1 to 1000", id="too many runs"),
        pytest.param(["next", "--schedule", "* * *"], "expected 5 fields", id="a schedule that is none"),
        pytest.param(
            ["next", "--schedule", "@daily", "--zone", "Mars/Base"],
            '"Mars/Base" is unknown',
            id="a zone that is none",
        ),
        pytest.param(["trigger", "A/B"], "'A/B' is no name", id="a name that no object has"),
        pytest.param(["list", "-n", "A/B"], "'A/B' is no namespace", id="a namespace that is none"),
        pytest.param(["list", "--context", "x"], "there is no context 'x'", id="an unknown context"),
        pytest.param(["suspend", "a"], "127.0.0.1:1", id="a server that does not answer"),
    ],
)
def test_what_cannot_be_done_ends_with_2_and_a_sentence(arguments, sentence, tmp_path, capsys):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    assert main(["cron", *arguments, "--kubeconfig", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("eagleray cron: ")
    assert sentence in shown.err
    assert len(shown.err.splitlines()) == 1


def test_the_runs_of_a_schedule_are_shown_without_a_cluster(capsys):
    assert main(["cron", "next", "--schedule", "0 9 * * MON-FRI", "--zone", "Asia/Taipei", "-c", "6"]) == 0
    title, *runs = capsys.readouterr().out.splitlines()
    assert title == "0 9 * * MON-FRI in Asia/Taipei"
    assert len(runs) == 6
    assert all(" 09:00:00 CST  " in run and run.endswith("T01:00:00Z") for run in runs)
    assert not any(run.split()[0] in ("Sat", "Sun") for run in runs)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["trigger"]])
def test_what_argparse_refuses_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["cron", *arguments])
    assert ended.value.code == 2
    assert "usage: eagleray cron" in capsys.readouterr().err
