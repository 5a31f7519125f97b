"""What of a machine is visible in images: system directories read-only, and nothing that is private."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from kubereef.node.images import User
from kubereef.node.images.host import host_base, lacking, write_base

RAY = User("ray", 1000, "users", 100, "/home/ray")


@pytest.fixture
def machine(tmp_path):
    """A small machine with /bin merged into /usr, a home, keys and services."""
    root = tmp_path / "machine"
    for folder in (
        "usr/bin",
        "usr/lib",
        "usr/share",
        "usr/local/bin",
        "home/anna",
        "root",
        "var/lib/db",
        "opt/x",
    ):
        (root / folder).mkdir(parents=True)
    for folder in ("etc/ssl/certs", "etc/ssl/private", "etc/alternatives", "etc/ssh"):
        (root / folder).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "lib").symlink_to("usr/lib")
    for file in ("etc/shadow", "etc/passwd", "etc/ld.so.cache", "etc/ssl/private/key", "usr/lib/os-release"):
        (root / file).write_text("secret")
    program = root / "usr/bin/bash"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return root


def test_system_directories_are_bound_and_links_stay_links(machine):
    base = host_base(RAY, root=machine)
    targets = {bind.target for bind in base.binds}
    assert {
        "/usr/bin",
        "/usr/lib",
        "/usr/share",
        "/etc/ssl/certs",
        "/etc/alternatives",
        "/etc/ld.so.cache",
    } == targets
    assert base.links["/bin"] == "usr/bin"


@pytest.mark.parametrize(
    "private", ["home", "root", "var", "opt", "usr/local/bin", "etc/shadow", "etc/ssl/private", "etc/ssh"]
)
def test_nothing_private_is_visible(machine, private):
    shown = [bind.source for bind in host_base(RAY, root=machine).binds]
    assert not [source for source in shown if (machine / private).is_relative_to(source)]
    assert not [source for source in shown if source.startswith(str(machine / private))]


def test_on_a_machine_with_a_bin_of_its_own_that_is_bound(machine):
    (machine / "bin").unlink()
    (machine / "bin").mkdir()
    assert "/bin" in {bind.target for bind in host_base(RAY, root=machine).binds}


def test_a_certificate_file_that_is_a_link_is_bound_by_what_it_leads_to(machine):
    (machine / "certs").write_text("ca")
    (machine / "etc/ssl/cert.pem").symlink_to(machine / "certs")
    sources = {bind.target: bind.source for bind in host_base(RAY, root=machine).binds}
    assert sources["/etc/ssl/cert.pem"] == str(machine / "certs")


def test_the_base_has_users_of_our_own_and_a_place_for_every_bind(machine, tmp_path):
    base = host_base(RAY, ("/data",), root=machine)
    tree = tmp_path / "tree"
    tree.mkdir()
    write_base(base, tree)
    assert "ray:x:1000:100::/home/ray:/bin/bash" in (tree / "etc/passwd").read_text()
    assert "secret" not in (tree / "etc/passwd").read_text()
    assert stat.S_IMODE((tree / "tmp").stat().st_mode) == 0o1777
    for bind in base.binds:
        assert (tree / bind.target.lstrip("/")).is_dir() == Path(bind.source).is_dir()
    assert (tree / "usr/local/bin").is_dir()
    if os.geteuid() == 0:
        assert [(tree / path).stat().st_uid for path in ("home/ray", "data")] == [1000, 1000]


def test_a_new_group_is_written_down():
    base = host_base(User("app", 500, "apps", 500, "/home/app"))
    assert "apps:x:500:" in base.files["/etc/group"]


def test_programs_that_a_machine_lacks_are_named(machine):
    assert lacking(("bash", "wget"), machine) == ("wget",)


def test_programs_that_are_called_by_path_stand_beside_those_of_the_machine(machine, tmp_path):
    (machine / "usr/lib/real").write_text("of the library")
    (machine / "usr/bin/linked").symlink_to("../lib/real")
    tree = tmp_path / "tree"
    tree.mkdir()
    base = host_base(RAY, root=machine, brought=("csh",))
    write_base(base, tree)
    for bind in base.binds:  # as a container has it bound there
        if Path(bind.source).is_dir():
            shutil.copytree(bind.source, tree / bind.target.lstrip("/"), symlinks=True, dirs_exist_ok=True)
    assert (tree / "bin/bash").read_text() == "#!/bin/sh\n"
    assert (tree / "usr/bin/linked").read_text() == "of the library"
    assert str((tree / "bin/csh").readlink()) == "/usr/local/bin/csh"
