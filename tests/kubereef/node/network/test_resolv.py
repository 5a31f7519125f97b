"""What a Pod finds in /etc/resolv.conf and /etc/hosts."""

import pytest

from kubereef.node.network.resolv import (
    BadHostname,
    PodNames,
    Resolution,
    pod_hosts,
    pod_names,
    pod_resolution,
    read_resolution,
    write_resolution,
)

NODE = Resolution(("192.0.2.53",), ("corp.example",), ("rotate",))
CLUSTER = Resolution(
    ("10.96.0.10",),
    ("apps.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"),
    ("ndots:5",),
)


def resolution(spec, cluster_dns=("10.96.0.10",)):
    return pod_resolution(spec, "apps", cluster_dns=cluster_dns, domain="cluster.local", node=NODE)


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, CLUSTER, id="the cluster's DNS first unless told otherwise"),
        pytest.param({"dnsPolicy": "ClusterFirst"}, CLUSTER, id="ClusterFirst"),
        pytest.param({"dnsPolicy": "Default"}, NODE, id="Default is the node's"),
        pytest.param({"hostNetwork": True}, NODE, id="the host's network has the node's"),
        pytest.param(
            {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
            CLUSTER,
            id="ClusterFirstWithHostNet",
        ),
        pytest.param({"dnsPolicy": "None"}, Resolution(), id="None is empty"),
        pytest.param(
            {
                "dnsPolicy": "None",
                "dnsConfig": {
                    "nameservers": ["1.1.1.1"],
                    "searches": ["a.example"],
                    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
                },
            },
            Resolution(("1.1.1.1",), ("a.example",), ("ndots:2", "edns0")),
            id="None with what the Pod gives",
        ),
        pytest.param(
            {
                "dnsConfig": {
                    "nameservers": ["1.1.1.1", "10.96.0.10"],
                    "searches": ["a.example", "cluster.local"],
                    "options": [{"name": "ndots", "value": "1"}],
                }
            },
            Resolution(("10.96.0.10", "1.1.1.1"), (*CLUSTER.searches, "a.example"), ("ndots:1",)),
            id="what the Pod gives is added once, and its options win",
        ),
        pytest.param(
            {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3"]}},
            CLUSTER._replace(nameservers=("10.96.0.10", "1.1.1.1", "1.1.1.2")),
            id="three servers at most",
        ),
    ],
)
def test_pod_resolution(spec, want):
    assert resolution(spec) == want


def test_a_cluster_without_dns_gives_pods_the_nodes():
    assert resolution({}, cluster_dns=()) == NODE


def test_search_domains_are_bounded_in_number_and_length():
    many = resolution(
        {"dnsPolicy": "None", "dnsConfig": {"searches": [f"d{number}" for number in range(99)]}}
    )
    assert len(many.searches) == 32
    long = resolution(
        {"dnsPolicy": "None", "dnsConfig": {"searches": [f"{n}" + "x" * 200 for n in range(32)]}}
    )
    assert len(" ".join(long.searches)) <= 2048


def test_a_resolv_conf_is_read_as_it_is_written():
    assert read_resolution(write_resolution(CLUSTER)) == CLUSTER


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "# comment\nnameserver 1.1.1.1 # why\nnameserver 2.2.2.2\n",
            Resolution(("1.1.1.1", "2.2.2.2")),
            id="comments are left out",
        ),
        pytest.param(
            "search a\nsearch b c\n", Resolution(searches=("b", "c")), id="the last search line counts"
        ),
        pytest.param("domain a\n", Resolution(searches=("a",)), id="a domain is a search"),
        pytest.param("nameserver\n\nbogus line\n", Resolution(), id="what is not understood is left out"),
    ],
)
def test_read_resolution(text, want):
    assert read_resolution(text) == want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, PodNames("pod-1"), id="its own name"),
        pytest.param({"hostname": "head"}, PodNames("head"), id="a hostname that it gives"),
        pytest.param(
            {"hostname": "head", "subdomain": "ray"},
            PodNames("head", "head.ray.apps.svc.cluster.local"),
            id="a full name under its subdomain",
        ),
        pytest.param(
            {"subdomain": "ray"},
            PodNames("pod-1", "pod-1.ray.apps.svc.cluster.local"),
            id="a subdomain alone",
        ),
        pytest.param(
            {"subdomain": "ray", "setHostnameAsFQDN": True},
            PodNames("pod-1.ray.apps.svc.cluster.local", "pod-1.ray.apps.svc.cluster.local"),
            id="the full name as hostname",
        ),
        pytest.param(
            {"setHostnameAsFQDN": True}, PodNames("pod-1"), id="without a subdomain there is no full name"
        ),
        pytest.param({"hostNetwork": True}, PodNames("node-a"), id="the host's network has the node's name"),
        pytest.param({"hostname": "x" * 70}, PodNames("x" * 63), id="cut to what the kernel takes"),
        pytest.param({"hostname": "x" * 62 + "-yz"}, PodNames("x" * 62), id="cut without a dash at the end"),
    ],
)
def test_pod_names(spec, want):
    assert pod_names(spec, "pod-1", "apps", domain="cluster.local", node_hostname="node-a") == want


def test_a_full_name_that_is_too_long_for_a_hostname_is_refused_with_a_way_out():
    spec = {"hostname": "x" * 50, "subdomain": "ray", "setHostnameAsFQDN": True}
    with pytest.raises(BadHostname, match="shorten hostname or subdomain"):
        pod_names(spec, "pod-1", "apps", domain="cluster.local")


def host_lines(spec, names, node_hosts=""):
    return pod_hosts(spec, ["10.1.0.5", "fd00::5"], names, node_hosts=node_hosts).splitlines()


def test_hosts_name_the_pod_at_each_of_its_addresses():
    lines = host_lines({}, PodNames("head"))
    assert "127.0.0.1\tlocalhost" in lines
    assert lines[-2:] == ["10.1.0.5\thead", "fd00::5\thead"]


@pytest.mark.parametrize("hostname", ["head", "head.ray.apps.svc.cluster.local"])
def test_hosts_have_the_full_name_before_the_short_one(hostname):
    lines = host_lines({}, PodNames(hostname, "head.ray.apps.svc.cluster.local"))
    assert "10.1.0.5\thead.ray.apps.svc.cluster.local\thead" in lines


def test_aliases_are_added_at_the_end():
    spec = {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}]}
    assert host_lines(spec, PodNames("head"))[-1] == "1.2.3.4\ta\tb"
    assert host_lines(spec | {"hostNetwork": True}, PodNames("n"), "9.9.9.9\tnine\n")[-1] == "1.2.3.4\ta\tb"


def test_the_hosts_network_has_the_nodes_hosts():
    lines = host_lines({"hostNetwork": True}, PodNames("n"), "9.9.9.9\tnine\n")
    assert "9.9.9.9\tnine" in lines
    assert not any("10.1.0.5" in line for line in lines)
