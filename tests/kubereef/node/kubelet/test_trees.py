"""Trees that containers have filled."""

import os

import pytest

from kubereef.node.kubelet.trees import disk_usage, entries_below, give_tree, remove_tree


@pytest.fixture
def deep(tmp_path):
    """A directory that is deeper than a path can say, and than Python recurses."""
    root = tmp_path / "root"
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    yield root
    remove_tree(root)


def test_however_deep_a_tree_is_it_can_be_measured_and_removed(deep):
    assert disk_usage(deep) >= 0
    assert sum(1 for _ in entries_below(deep)) > 500
    remove_tree(deep)
    assert not deep.exists()


def test_what_symlinks_lead_to_is_not_touched(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    root = tmp_path / "root"
    (root / "below").mkdir(parents=True)
    (root / "below" / "link").symlink_to(outside)
    (root / "file-link").symlink_to(outside / "file")
    before = (outside / "file").stat()
    give_tree(root, os.getgid(), only_if_root_differs=False)
    assert (outside / "file").stat().st_mode == before.st_mode
    remove_tree(root)
    assert not root.exists()
    assert (outside / "file").read_text() == "kept"
    (tmp_path / "to-outside").symlink_to(outside)
    remove_tree(tmp_path / "to-outside")
    assert outside.exists()


def test_a_tree_is_given_to_a_group(tmp_path):
    (tmp_path / "a").mkdir(mode=0o700)
    (tmp_path / "a" / "file").touch(0o600)
    give_tree(tmp_path, os.getgid(), only_if_root_differs=False)
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o2770
    assert (tmp_path / "a" / "file").stat().st_mode & 0o777 == 0o660
    (tmp_path / "a" / "file").chmod(0o600)
    give_tree(tmp_path, os.getgid(), only_if_root_differs=True)  # the root is as it should be
    assert (tmp_path / "a" / "file").stat().st_mode & 0o777 == 0o600


def test_a_directory_that_is_not_there_is_removed_already(tmp_path):
    remove_tree(tmp_path / "none")
