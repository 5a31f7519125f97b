from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubereef.node.network.ipam import AddressPool, NoFreeAddress

SMALL = ip_network("10.1.0.0/29")  # six addresses, 10.1.0.1 to 10.1.0.6


def addresses(*numbers):
    return [ip_address(f"10.1.0.{number}") for number in numbers]


def test_addresses_come_in_turn_without_the_networks_first_and_last():
    pool = AddressPool(SMALL, reserved=addresses(1))
    assert [pool.allocate(owner) for owner in "abcde"] == addresses(2, 3, 4, 5, 6)


def test_the_same_owner_keeps_its_address():
    pool = AddressPool(SMALL)
    assert pool.allocate("a") == pool.allocate("a")


def test_a_released_address_rests_until_all_others_were_given():
    pool = AddressPool(SMALL)
    assert pool.allocate("a") == ip_address("10.1.0.1")
    pool.release("a")
    given_next = []
    for owner in "bcdefg":
        given_next.append(pool.allocate(owner))
        pool.release(owner)
    assert given_next == addresses(2, 3, 4, 5, 6, 1)


def test_a_full_network_is_refused_with_its_name_and_works_again_after_a_release():
    pool = AddressPool(SMALL)
    for owner in "abcdef":
        pool.allocate(owner)
    with pytest.raises(NoFreeAddress, match=r"10\.1\.0\.0/29: 6 are in use"):
        pool.allocate("g")
    pool.release("c")
    assert pool.allocate("g") == ip_address("10.1.0.3")


def test_after_a_restart_what_is_in_use_is_kept_and_the_turn_goes_on_behind_it():
    pool = AddressPool(SMALL, in_use={"a": ip_address("10.1.0.2"), "b": ip_address("10.1.0.4")})
    assert pool.allocate("b") == ip_address("10.1.0.4")
    assert pool.allocate("c") == ip_address("10.1.0.5")


def test_two_owners_cannot_have_the_same_address():
    with pytest.raises(ValueError, match="taken"):
        AddressPool(SMALL, in_use={"a": ip_address("10.1.0.2"), "b": ip_address("10.1.0.2")})


def test_an_address_of_another_network_cannot_be_taken():
    with pytest.raises(ValueError, match="not in"):
        AddressPool(SMALL, in_use={"a": ip_address("10.2.0.2")})


def test_a_huge_network_costs_no_more_than_what_is_in_use():
    pool = AddressPool(ip_network("fd00::/64"))
    assert [str(pool.allocate(owner)) for owner in "abc"] == ["fd00::1", "fd00::2", "fd00::3"]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdefgh"))))
def test_no_two_owners_ever_share_an_address(steps):
    pool = AddressPool(SMALL)
    for is_release, owner in steps:
        if is_release:
            pool.release(owner)
        else:
            try:
                assert pool.allocate(owner) in SMALL
            except NoFreeAddress:
                assert len(pool.in_use) == 6
        taken = list(pool.in_use.values())
        assert len(set(taken)) == len(taken)
