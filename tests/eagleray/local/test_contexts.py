"""Entries in a user's kubeconfig: ours go in and out, and everything else stays."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from eagleray.kube.kubeconfig import find_access
from eagleray.local.contexts import Context, ContextError, add, kubeconfig_file, remove
from eagleray.local.users import User, invoking_user
from kubewire.sources import SystemClock

OURS = Context("eagleray", "/data/eagleray", "https://127.0.0.1:6443", "Q0E=", "secret")
THEIRS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "prod", "cluster": {"server": "https://prod:6443", "new-key": {"of": ["later"]}}}],
    "users": [{"name": "prod", "user": {"token": "1e3"}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod", "namespace": "on"}}],
    "current-context": "prod",
}


@pytest.fixture
def user(tmp_path):
    return User(os.geteuid(), os.getegid(), tmp_path)


@pytest.fixture
def file(tmp_path):
    """A kubeconfig with the entries of somebody else."""
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(THEIRS).replace("1e3", '"1e3"'))
    return path


def read(file):
    return yaml.safe_load(file.read_text())


def named(config, kind):
    return [one["name"] for one in config[kind]]


def test_a_context_that_was_added_leads_to_the_cluster(file, user):
    add(file, OURS, user)
    access = find_access({}, SystemClock(), kubeconfig=str(file))
    assert access.server == "https://127.0.0.1:6443"
    assert access.authority is not None
    assert access.authority.read() == b"CA"


def test_what_was_in_the_file_stays_whole(file, user):
    add(file, OURS, user)
    config = read(file)
    assert config["preferences"] == THEIRS["preferences"]
    for kind in ("clusters", "users", "contexts"):
        assert config[kind][0] == THEIRS[kind][0]
        assert named(config, kind) == ["prod", "eagleray"]
    assert config["current-context"] == "eagleray"


def test_texts_that_another_reader_takes_for_numbers_are_quoted(file, user):
    add(file, OURS, user)
    assert 'token: "1e3"' in file.read_text()
    assert 'namespace: "on"' in file.read_text()


def test_only_the_owner_can_read_the_file_whatever_it_was_before(file, user):
    file.chmod(0o644)
    add(file, OURS, user)
    assert file.stat().st_mode & 0o777 == 0o600


def test_removing_gives_the_file_back_as_it_was(file, user):
    before = read(file)
    add(file, OURS, user)
    assert remove(file, "eagleray", OURS.owner, user) is True
    assert read(file) == before


def test_the_current_context_is_left_alone_if_asked_for(file, user):
    add(file, OURS, user, make_current=False)
    assert read(file)["current-context"] == "prod"


def test_a_current_context_that_somebody_chose_later_stays(file, user):
    add(file, OURS, user)
    config = read(file)
    config["contexts"].append({"name": "other", "context": {"cluster": "prod", "user": "prod"}})
    config["current-context"] = "other"
    file.write_text(yaml.safe_dump(config))
    remove(file, "eagleray", OURS.owner, user)
    assert read(file)["current-context"] == "other"


def test_a_context_before_that_is_gone_is_not_made_current(file, user):
    add(file, OURS, user)
    config = read(file)
    config["contexts"] = [one for one in config["contexts"] if one["name"] != "prod"]
    file.write_text(yaml.safe_dump(config))
    remove(file, "eagleray", OURS.owner, user)
    assert read(file)["current-context"] == ""


def test_adding_again_replaces_and_still_knows_what_was_current_before(file, user):
    add(file, OURS, user)
    add(file, OURS._replace(server="https://127.0.0.1:7000"), user)
    assert named(read(file), "clusters") == ["prod", "eagleray"]
    assert read(file)["clusters"][1]["cluster"]["server"] == "https://127.0.0.1:7000"
    remove(file, "eagleray", OURS.owner, user)
    assert read(file)["current-context"] == "prod"


@pytest.mark.parametrize("kind", ["clusters", "users", "contexts"])
def test_an_entry_of_somebody_else_with_our_name_is_not_touched(file, user, kind):
    config = read(file)
    config[kind].append({"name": "eagleray", kind[:-1]: {}})
    file.write_text(yaml.safe_dump(config))
    before = file.read_text()
    with pytest.raises(ContextError, match=f"{kind} has an entry 'eagleray' that is not ours"):
        add(file, OURS, user)
    assert remove(file, "eagleray", OURS.owner, user) is False
    assert file.read_text() == before


def test_a_cluster_of_the_same_name_in_another_directory_is_somebody_elses(file, user):
    add(file, OURS, user)
    with pytest.raises(ContextError, match="not ours"):
        add(file, OURS._replace(owner="/elsewhere/eagleray"), user)
    assert remove(file, "eagleray", "/elsewhere/eagleray", user) is False
    assert named(read(file), "contexts") == ["prod", "eagleray"]


def test_a_file_that_was_made_for_us_is_gone_with_our_entries(tmp_path, user):
    file = tmp_path / "kube" / "config"
    add(file, OURS, user)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    remove(file, "eagleray", OURS.owner, user)
    assert not file.exists()


def test_a_link_stays_a_link(tmp_path, file, user):
    link = tmp_path / "link"
    link.symlink_to(file)
    add(link, OURS, user)
    assert link.is_symlink()
    assert named(read(file), "contexts") == ["prod", "eagleray"]


def test_a_file_that_kubectl_is_writing_is_left_alone(file, user):
    lock = file.with_name("config.lock")
    lock.touch()
    before = file.read_text()
    with pytest.raises(ContextError, match=r"another program is writing it.*config\.lock"):
        add(file, OURS, user)
    assert file.read_text() == before
    assert lock.exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("[1, 2]", "this is no kubeconfig", id="something else"),
        pytest.param("clusters: {a: b}", "clusters must be a list of entries", id="a mapping for a list"),
        pytest.param("clusters: [", "config: ", id="no YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_told_and_left(file, user, text, sentence):
    file.write_text(text)
    with pytest.raises(ContextError, match=sentence):
        add(file, OURS, user)
    assert file.read_text() == text
    assert [one.name for one in file.parent.iterdir()] == ["config"]


def test_nothing_is_left_beside_the_file(file, user):
    add(file, OURS, user)
    assert [one.name for one in file.parent.iterdir()] == ["config"]


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        pytest.param({"KUBECONFIG": "/a/one:/a/two"}, Path("/a/one"), id="the first that is listed"),
        pytest.param({"KUBECONFIG": ":/a/two"}, Path("/a/two"), id="empty places are none"),
        pytest.param({}, Path("/home/me/.kube/config"), id="else the one in the home"),
    ],
)
def test_the_file_that_kubectl_writes_is_the_one(environ, wanted):
    assert kubeconfig_file(environ, User(1, 1, Path("/home/me"))) == wanted


# --- under sudo


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_that_root_makes_for_a_user_are_the_users(tmp_path):
    user = User(65534, 65534, tmp_path / "home")
    add(user.home / ".kube" / "config", OURS, user)
    for path in (user.home, user.home / ".kube", user.home / ".kube" / "config"):
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_stays_theirs(file, user):
    os.chown(file, 65534, 65534)
    add(file, OURS, user)
    assert file.stat().st_uid == 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo makes somebody root")
@pytest.mark.parametrize(
    ("uid", "wanted"),
    [
        pytest.param("65534", 65534, id="whoever called sudo"),
        pytest.param("0", 0, id="root is root"),
        pytest.param("4000000000", 0, id="a user that this machine does not know"),
        pytest.param("-1", 0, id="no number"),
    ],
)
def test_the_user_is_whoever_typed_the_command(uid, wanted):
    assert invoking_user({"SUDO_UID": uid, "HOME": "/root"}).uid == wanted
