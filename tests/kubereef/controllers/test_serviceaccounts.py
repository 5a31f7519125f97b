"""What every namespace has from the start."""

import asyncio

import pytest

from kubereef.controllers.serviceaccounts import RootCertificatePublisher, ServiceAccountController

NS = "/api/v1/namespaces"


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(ServiceAccountController, RootCertificatePublisher)
    return simulated_cluster.client


async def new_namespace(client):
    await client.create(NS, {"metadata": {"name": "new"}})
    await asyncio.sleep(1)


async def test_a_new_namespace_gets_its_account_and_the_certificate(client):
    await new_namespace(client)
    account = await client.get(f"{NS}/new/serviceaccounts/default")
    assert "secrets" not in account
    config_map = await client.get(f"{NS}/new/configmaps/kube-root-ca.crt")
    assert config_map["data"] == {"ca.crt": "a certificate"}
    assert config_map["metadata"]["annotations"]["kubernetes.io/description"].startswith(
        "Contains a CA bundle"
    )


async def test_namespaces_that_were_there_before_get_them_too(client):
    await asyncio.sleep(1)
    for namespace in ("default", "kube-system"):
        assert await client.get(f"{NS}/{namespace}/serviceaccounts/default")
        assert await client.get(f"{NS}/{namespace}/configmaps/kube-root-ca.crt")


@pytest.mark.parametrize("path", ["serviceaccounts/default", "configmaps/kube-root-ca.crt"])
async def test_what_is_deleted_comes_back(client, path):
    await new_namespace(client)
    first = await client.get(f"{NS}/new/{path}")
    await client.delete(f"{NS}/new/{path}")
    await asyncio.sleep(1)
    assert (await client.get(f"{NS}/new/{path}"))["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"data": {"ca.crt": "broken"}}, id="another certificate"),
        pytest.param({"data": {"more": "keys"}}, id="another key"),
        pytest.param({"metadata": {"annotations": None}}, id="no description"),
    ],
)
async def test_a_changed_certificate_is_put_right(client, change):
    await new_namespace(client)
    url = f"{NS}/new/configmaps/kube-root-ca.crt"
    await client.patch(url, change)
    await asyncio.sleep(1)
    config_map = await client.get(url)
    assert config_map["data"] == {"ca.crt": "a certificate"}
    assert config_map["metadata"]["annotations"]["kubernetes.io/description"]


async def test_what_users_add_to_the_certificate_stays(client):
    await new_namespace(client)
    url = f"{NS}/new/configmaps/kube-root-ca.crt"
    await client.patch(url, {"metadata": {"labels": {"mine": "yes"}, "annotations": {"mine": "too"}}})
    await client.patch(url, {"data": {"ca.crt": "broken"}})
    await asyncio.sleep(1)
    metadata = (await client.get(url))["metadata"]
    assert metadata["labels"] == {"mine": "yes"}
    assert metadata["annotations"]["mine"] == "too"


@pytest.mark.parametrize(
    "delay", [pytest.param(0, id="and known to be"), pytest.param(5, id="but not known to be")]
)
async def test_a_namespace_that_is_going_is_not_furnished(late_news, client, caplog, delay):
    await new_namespace(client)
    late_news["namespaces"] = delay
    await client.delete(f"{NS}/new")
    await client.delete(f"{NS}/new/serviceaccounts/default")
    await client.delete(f"{NS}/new/configmaps/kube-root-ca.crt")
    await asyncio.sleep(60)
    assert (await client.get(f"{NS}/new/serviceaccounts"))["items"] == []
    assert (await client.get(f"{NS}/new/configmaps"))["items"] == []
    assert caplog.text == ""
