"""Gateways are there when they are asked for, or when there is a node to serve them."""

import urllib.error
import urllib.request

import pytest

from tests.kubereef.gateway.making import CLASSES
from tests.reef.process import Kubereef


def status_of_class(reef):
    headers = {"Authorization": f"Bearer {reef.token}"}
    request = urllib.request.Request(f"{reef.url}{CLASSES}/kubereef", headers=headers)
    try:
        with urllib.request.urlopen(request, context=reef.trust) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param((), 404, id="without a node there are none"),
        pytest.param(("--gateway",), 200, id="unless they are asked for"),
        pytest.param(("--no-gateway",), 404, id="nor where they are left out"),
    ],
)
def test_gateways_are_installed(tmp_path, options, want):
    with Kubereef(tmp_path, "--in-memory", *options) as reef:
        assert status_of_class(reef) == want
        assert reef.stop() == ""
