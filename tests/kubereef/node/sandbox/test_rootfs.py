"""A container's file tree, looked at from inside."""

from pathlib import Path

import pytest

from kubereef.node.sandbox import Exit, Mount, Security, StartFailed, write_etc_files
from tests.kubereef.node.sandbox.inside import eventually, in_node, status, text


@in_node("overlay")
async def test_the_first_layer_wins_and_writes_go_to_the_writable_layer(bench):
    pod = await bench.pod()
    upper, lower = bench.directory(), bench.directory()
    (upper / "both").write_text("upper")
    (lower / "both").write_text("lower")
    (lower / "below").write_text("only lower")
    spec = {"layers": (upper, lower, bench.image)}
    result = await bench.shell(
        pod, "cat /both /below /etc/release; echo new >/both; rm /below; cat /both", **spec
    )
    assert result.output == "upperonly lowera small image\nnew\n"
    assert ((upper / "both").read_text(), (lower / "below").read_text()) == ("upper", "only lower")


@in_node("overlay")
async def test_a_layer_may_lie_in_a_directory_of_any_name(bench):
    pod = await bench.pod()
    layer = bench.directory() / "a:b,c=\\d e"
    layer.mkdir()
    (layer / "mark").write_text("found")
    assert (await bench.shell(pod, "cat /mark", layers=(layer, bench.image))).output == "found"


@in_node()
async def test_nothing_of_the_host_is_visible_but_layers_and_mounts(bench):
    pod = await bench.pod()
    result = await bench.shell(pod, "ls -A /")
    assert set(result.output.split()) <= {
        "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "tmp", "usr"
    }  # fmt: skip
    result = await bench.shell(pod, "cut -d' ' -f2 /proc/mounts")
    roots = {mount.split("/")[1] for mount in result.output.split()}
    assert roots <= {"", "bin", "dev", "lib", "lib64", "proc", "sys", "usr"}
    result = await bench.shell(pod, f"ls {bench.work}")
    assert result.exit != Exit(0)


@in_node("overlay in memory")
async def test_the_writable_layer_may_be_in_memory(bench):
    pod = await bench.pod()
    result = await bench.shell(pod, "echo x >/file; cat /file /etc/release", style="overlay in memory")
    assert result.output == "x\na small image\n"


@in_node()
async def test_without_overlayfs_the_layers_are_read_only_and_scratch_directories_writable(bench):
    pod = await bench.pod()
    upper, lower = bench.directory(), bench.directory()
    for layer, name in ((upper, "upper"), (lower, "lower")):
        (layer / "shared").mkdir()
        (layer / "shared" / name).write_text(name)
        (layer / "shared" / "both").write_text(name)
    script = (
        "cat /shared/*; echo x >/tmp/x && echo x >/var/tmp/x && cat /tmp/x; echo x >/shared/both || echo no"
    )
    result = await bench.shell(pod, script, layers=(upper, lower, bench.image), style="read-only layers")
    assert result.output.startswith("upperlowerupperx\n")
    assert result.output.endswith("no\n")


@in_node()
async def test_a_read_only_root_still_has_writable_volumes(bench):
    pod = await bench.pod()
    volume = bench.directory()
    script = (
        "echo x >/data/file && echo written; echo x >/other || echo refused; rm /etc/release || echo kept"
    )
    mounts = (Mount(target="/data", source=volume),)
    result = await bench.shell(pod, script, read_only=True, mounts=mounts)
    assert [line for line in result.output.splitlines() if " " not in line] == ["written", "refused", "kept"]
    assert (volume / "file").read_text() == "x\n"


@in_node()
async def test_a_read_only_mount_is_read_only_with_everything_below_it(bench):
    pod = await bench.pod()
    result = await bench.shell(
        pod, "echo x >/data/file || echo refused",
        mounts=(Mount(target="/data", source=bench.directory(), read_only=True),),
    )  # fmt: skip
    assert result.output.endswith("refused\n")


@in_node()
async def test_a_tmpfs_has_its_size_and_mode(bench):
    pod = await bench.pod()
    mounts = (Mount(target="/memory", kind="tmpfs", size=1024 * 1024, mode=0o750),)
    script = "stat -c %a /memory; head -c 2000000 /dev/zero >/memory/file; stat -c %s /memory/file"
    result = await bench.shell(pod, script, mounts=mounts)
    lines = result.output.splitlines()
    assert (lines[0], lines[-1]) == ("750", "1048576")


@in_node()
async def test_a_symlink_in_the_image_cannot_lead_a_mount_out_of_the_root(bench):
    pod = await bench.pod()
    outside = bench.directory()
    (bench.image / "data").symlink_to(outside)
    (bench.image / "up").symlink_to("../../../../../../etc")
    volume = bench.directory()
    (volume / "mark").write_text("mine")
    mounts = (Mount(target="/data/in", source=volume), Mount(target="/up/in", source=volume))
    result = await bench.shell(pod, "cat /data/in/mark /etc/in/mark", mounts=mounts)
    assert result.output == "minemine"
    assert list(outside.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        status("/etc/in")


@in_node()
async def test_a_symlink_in_a_volume_cannot_lead_a_mount_below_it_out_of_the_root(bench):
    pod = await bench.pod()
    outside, volume, other = bench.directory(), bench.directory(), bench.directory()
    (volume / "link").symlink_to(outside)
    (other / "mark").write_text("mine")
    mounts = (Mount(target="/data", source=volume), Mount(target="/data/link/in", source=other))
    result = await bench.shell(pod, "cat /data/link/in/mark", mounts=mounts)
    assert result.output == "mine"
    assert list(outside.iterdir()) == []


@in_node()
async def test_a_sub_path_is_made_and_cannot_leave_its_volume(bench):
    pod = await bench.pod()
    outside, volume = bench.directory(), bench.directory()
    (volume / "link").symlink_to(outside)
    (volume / "inside").symlink_to("deep/er")
    mount = Mount(target="/data", source=volume, sub_path="deep/er")
    await bench.shell(pod, "echo x >/data/file", mounts=(mount,))
    assert (volume / "deep" / "er" / "file").read_text() == "x\n"
    through_link = Mount(target="/data", source=volume, sub_path="inside")
    assert (await bench.shell(pod, "cat /data/file", mounts=(through_link,))).output == "x\n"
    for bad in ("link", "link/below"):
        with pytest.raises(StartFailed) as failed:
            await bench.shell(pod, "true", mounts=(Mount(target="/data", source=volume, sub_path=bad),))
        assert failed.value.step == "volume at /data"
    assert list(outside.iterdir()) == []


@in_node()
async def test_a_pod_brings_hosts_resolver_and_hostname_files(bench):
    pod = await bench.pod()
    (bench.image / "etc" / "resolv.conf").symlink_to("../run/resolve/stub.conf")
    files = write_etc_files(bench.directory(), "127.0.0.1 localhost\n", "nameserver 10.0.0.10\n", "web-0\n")
    result = await bench.shell(pod, "cat /etc/hosts /etc/resolv.conf /etc/hostname; hostname", mounts=files)
    assert result.output == "127.0.0.1 localhost\nnameserver 10.0.0.10\nweb-0\nweb-0\n"


@in_node()
async def test_dev_has_what_programs_need(bench):
    pod = await bench.pod()
    script = """
        echo lost >/dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 8 /dev/urandom | wc -c
        echo x >/dev/full || echo full
        readlink /dev/fd /dev/stdin /dev/stdout /dev/stderr /dev/ptmx
        stat -f -c '%T %b*%S' /dev/shm; stat -c %a /dev/shm /dev/pts/ptmx /tmp
        test -c /dev/tty && test -c /dev/random && echo all
    """
    result = await bench.shell(pod, script, shm_size=8 * 1024 * 1024)
    words = result.output.split()
    assert words[:5] == ["00", "00", "00", "00", "8"]
    assert "full" in words
    assert [word for word in words if word.startswith(("/proc", "pts"))] == [
        "/proc/self/fd",
        "/proc/self/fd/0",
        "/proc/self/fd/1",
        "/proc/self/fd/2",
        "pts/ptmx",
    ]
    assert words[-6:] == ["tmpfs", "2048*4096", "1777", "666", "1777", "all"]


@in_node()
async def test_a_container_can_neither_make_a_usable_device_nor_change_one_of_the_machine(bench):
    pod = await bench.pod()
    before = status("/dev/null").st_mode
    script = """
        for place in /dev/mine /mine /tmp/mine /data/mine; do
            mknod $place c 1 5 && head -c 1 $place >/dev/null && echo usable $place
        done
        chmod 666 /dev/null && echo changed  # to what it is: were it let through, the machine would be none the worse
        echo done
    """
    result = await bench.shell(pod, script, mounts=(Mount(target="/data", source=bench.directory()),))
    assert "usable" not in result.output
    assert "changed" not in result.output
    assert result.output.endswith("done\n")
    assert status("/dev/null").st_mode == before


@in_node()
async def test_proc_and_sys_are_the_containers_own_and_protected(bench):
    pod = await bench.pod()
    script = """
        echo x >/proc/sys/kernel/hostname || echo refused
        echo x >/proc/sysrq-trigger || echo refused
        mkdir /sys/fs/x || echo refused
        wc -c </proc/timer_list; wc -c </proc/keys; ls /sys/firmware | wc -l; ls /sys/class/net
    """
    result = await bench.shell(pod, script)
    lines = [line for line in result.output.splitlines() if ":" not in line]
    assert lines == ["refused", "refused", "refused", "0", "0", "0", "lo"]


@in_node()
async def test_two_containers_of_a_pod_do_not_see_each_others_files_or_processes(bench):
    pod = await bench.pod()
    first = await bench.start(pod, "sh", "-c", "echo secret >/tmp/secret; exec sleep 1000")
    await eventually(lambda: text(f"/proc/{first.pid}/comm") == "sleep\n")
    result = await bench.shell(pod, "ls -A /tmp; cat /proc/[0-9]*/comm")
    assert result.output.split() == ["sh"]
    assert first.is_running


@in_node()
async def test_an_extra_device_is_given_when_asked_for(bench):
    pod = await bench.pod()
    device = Path("/dev/console")
    asked = await bench.shell(pod, f"test -c {device} && echo there", devices=(device,))
    assert asked.output == "there\n"
    assert (await bench.shell(pod, f"test -e {device} || echo absent")).output == "absent\n"


@in_node()
async def test_a_user_without_rights_cannot_read_what_root_alone_may(bench):
    pod = await bench.pod()
    volume = bench.directory()
    (volume / "secret").write_text("secret")
    (volume / "secret").chmod(0o600)
    mounts = (Mount(target="/data", source=volume),)
    result = await bench.shell(pod, "cat /data/secret || echo refused", mounts=mounts,
                               command={"security": Security(uid=1234, gid=1234)})  # fmt: skip
    assert result.output.endswith("refused\n")
