"""Replicas agree on one certificate, renew it in time, and leave alone what is not theirs."""

import asyncio
import base64
from datetime import timedelta

import pytest

from eagleray.webhooks.certificates import Directory, Serving, Unusable
from kubewire.certificates import CERTIFICATE_LIFE, Identity, Issuer, Pair, names_of
from kubewire.sources import SystemClock, SystemEntropy
from tests.eagleray.webhooks.conftest import SECRET, SECRETS

DAY = timedelta(days=1).total_seconds()


def decoded(secret):
    return {name: base64.b64decode(value) for name, value in secret["data"].items()}


def pair_of(serving):
    return Pair.of(serving.certificate, serving.key)


async def create(world, **data):
    encoded = {name.replace("_", "."): base64.b64encode(value).decode() for name, value in data.items()}
    secret = {"metadata": {"name": SECRET.name}, "type": "Opaque", "data": encoded}
    return await world.api.create(SECRETS, secret)


async def test_the_first_replica_makes_a_certificate_for_the_service(world):
    serving = await world.replica().current()
    pair, data = pair_of(serving), decoded(await world.secret())
    authority = Pair.of(data["ca.crt"], data["ca.key"])
    pair.certificate.verify_directly_issued_by(authority.certificate)
    assert {"webhook-service.default.svc", "127.0.0.1"} <= names_of(pair.certificate)
    assert serving == (data["tls.crt"], data["tls.key"], data["ca.crt"])
    assert (await world.secret())["type"] == "kubernetes.io/tls"


async def test_the_next_replica_takes_what_is_there(world):
    first = await world.replica(number=1).current()
    assert await world.replica(number=2).current() == first
    assert world.writes() == ["create"]


async def test_replicas_that_start_together_agree(world):
    both = await asyncio.gather(*(world.replica(number=number).current() for number in range(5)))
    assert len(set(both)) == 1


async def test_a_create_whose_answer_is_lost_is_found_again(world):
    world.faults.next = [None, "answer lost"]
    serving = await world.replica().current()
    assert serving.certificate == decoded(await world.secret())["tls.crt"]


async def test_a_certificate_is_renewed_in_its_last_third_under_the_same_authority(world):
    replica = world.replica()
    first = await replica.current()
    world.calendar.advance(CERTIFICATE_LIFE.total_seconds() * 2 / 3 - DAY)
    assert await replica.current() == first
    world.calendar.advance(2 * DAY)
    second = await replica.current()
    assert second.certificate != first.certificate
    assert second.authority == first.authority


async def test_two_replicas_that_renew_together_agree(world):
    replicas = [world.replica(number=number) for number in range(3)]
    await replicas[0].current()
    world.calendar.advance(300 * DAY)
    assert len(set(await asyncio.gather(*(one.current() for one in replicas)))) == 1
    assert world.writes().count("update") == 3, "all of them tried"


async def test_an_authority_is_renewed_with_its_key_so_that_old_trust_holds(world):
    replica = world.replica()
    first = await replica.current()
    world.calendar.advance(3000 * DAY)
    second = await replica.current()
    assert second.authority != first.authority
    old = Pair.of(first.authority, decoded(await world.secret())["ca.key"])
    pair_of(second).certificate.verify_directly_issued_by(old.certificate)


async def test_operators_of_two_services_share_a_certificate_and_come_to_rest(world):
    first, second = world.replica("a.default.svc"), world.replica("b.default.svc")
    await first.current()
    shared = await second.current()
    assert names_of(pair_of(shared).certificate) == {"a.default.svc", "b.default.svc"}
    assert await first.current() == shared
    assert await second.current() == shared
    assert world.writes() == ["create", "update"]


async def test_a_renewed_certificate_forgets_names_that_nobody_asks_for(world):
    await world.replica("a.default.svc").current()
    world.calendar.advance(300 * DAY)
    renewed = await world.replica("b.default.svc").current()
    assert names_of(pair_of(renewed).certificate) == {"b.default.svc"}


@pytest.mark.parametrize(
    "data",
    [pytest.param({}, id="no entries"), pytest.param({"tls_crt": b"", "tls_key": b""}, id="empty entries")],
)
async def test_an_empty_secret_is_filled(world, data):
    await create(world, **data)
    serving = await world.replica().current()
    assert decoded(await world.secret())["tls.crt"] == serving.certificate
    assert world.writes() == ["update"]


async def test_a_secret_of_somebody_else_is_served_and_not_written(world):
    issuer = Issuer(world.calendar, SystemEntropy())
    authority = issuer.authority("theirs")
    pair = issuer.serving(authority, Identity("theirs"), ["x"])
    await create(world, tls_crt=pair.certificate_pem, tls_key=pair.key_pem, ca_crt=authority.certificate_pem)
    assert await world.replica().current() == Serving(
        pair.certificate_pem, pair.key_pem, authority.certificate_pem
    )
    assert world.writes() == []


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"password": b"x"}, id="something else"),
        pytest.param({"tls_crt": b"x", "ca_key": b"y", "ca_crt": b"z"}, id="what cannot be read"),
    ],
)
async def test_a_secret_with_another_content_is_told_and_left_alone(world, data):
    await create(world, **data)
    with pytest.raises(Unusable, match=r"Secret default/webhook-server-cert.*delete"):
        await world.replica().current()
    assert world.writes() == []


async def test_a_secret_that_others_write_all_the_time_is_given_up(world):
    replica = world.replica()
    await replica.current()
    world.calendar.advance(300 * DAY)
    send = world.faults.send

    async def meddle(request):
        if request.method == "PUT":
            await world.api.patch(
                f"{SECRETS}/{SECRET.name}", {"metadata": {"labels": {"n": f"x{len(world.faults.sent)}"}}}
            )
        return await send(request)

    world.faults.send = meddle
    with pytest.raises(Unusable, match="all the time"):
        await replica.current()


# --- files


@pytest.fixture
def files(tmp_path):
    issuer = Issuer(SystemClock(), SystemEntropy())
    pair = issuer.serving(issuer.authority("a"), Identity("b"), ["localhost"])
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    return tmp_path


async def test_files_are_read_anew_each_time(files):
    directory = Directory(files)
    assert directory.is_there
    first = await directory.current()
    assert first.authority == b""
    (files / "tls.crt").write_bytes(b"another")
    assert (await directory.current()).certificate == b"another"


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
async def test_half_a_pair_of_files_is_none(files, missing):
    (files / missing).unlink()
    directory = Directory(files)
    assert not directory.is_there
    with pytest.raises(Unusable, match=missing):
        await directory.current()
