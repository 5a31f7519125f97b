"""Closing clients of kr8s, which have no `close` and leave their connections to a thread that outlives the test."""

import gc
import warnings

import kr8s
from kr8s._async_utils import Portal


def close(api: kr8s.Api) -> None:
    """Close the connections of a client, those of watches that it broke off among them."""
    if api._session is not None:
        Portal().call(api._session.aclose)
    forget_watches()


def forget_watches() -> None:
    """Have the connections collected here that kr8s leaves open, before another test is blamed for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
