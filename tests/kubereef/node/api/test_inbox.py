"""Bytes that wait to be taken, and how much of them at most."""

import asyncio

import pytest

from kubereef.node.kubelet.api import spdysession
from kubereef.node.kubelet.api.inbox import Inbox
from kubereef.node.kubelet.api.spdy import Decoder, Encoder, Reset, SynReply
from kubereef.node.kubelet.api.spdysession import Session, Stream


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_full_one_makes_its_sender_wait():
    inbox = Inbox(most=4)
    await inbox.put(b"four")
    waiting = asyncio.create_task(inbox.put(b"more"))
    await settle()
    assert not waiting.done()
    assert await inbox.get() == b"four"
    await waiting
    assert await inbox.get() == b"more"


async def test_an_end_lets_the_sender_go_and_drops_what_comes_after():
    inbox = Inbox(most=1)
    await inbox.put(b"x")
    waiting = asyncio.create_task(inbox.put(b"y"))
    await settle()
    inbox.end()
    await waiting
    assert [await inbox.get() for _ in range(2)] == [b"x", b""]


async def test_nothing_is_not_taken_for_the_end():
    inbox = Inbox()
    await inbox.put(b"")
    await inbox.put(b"x")
    assert await inbox.get() == b"x"


class Pipe:
    """A client's bytes, and what it is answered."""

    def __init__(self):
        self.incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self.frames = []
        self._decoder = Decoder()

    async def read(self):
        return await self.incoming.get()

    async def send(self, data):
        self.frames += self._decoder.feed(data)


@pytest.fixture
def pipe():
    return Pipe()


async def test_a_client_gets_no_more_streams_than_are_good_for_it(pipe, monkeypatch):
    monkeypatch.setattr(spdysession, "MOST_STREAMS", 2)
    opened: list[Stream] = []
    encoder = Encoder()
    for number in (1, 3, 5):
        pipe.incoming.put_nowait(encoder.syn_stream(number, {}))
    pipe.incoming.put_nowait(b"")
    await Session(pipe, opened.append).run()
    assert [stream.number for stream in opened] == [1, 3]
    assert pipe.frames == [SynReply(1, {}), SynReply(3, {}), Reset(5, 3)]


async def test_a_stream_that_both_sides_have_ended_makes_room_for_another(pipe, monkeypatch):
    monkeypatch.setattr(spdysession, "MOST_STREAMS", 1)
    opened: list[Stream] = []
    encoder = Encoder()
    session = asyncio.create_task(Session(pipe, opened.append).run())
    pipe.incoming.put_nowait(encoder.syn_stream(1, {}, fin=True))
    await settle()
    await opened[0].finish()
    pipe.incoming.put_nowait(encoder.syn_stream(3, {}))
    pipe.incoming.put_nowait(b"")
    await session
    assert [stream.number for stream in opened] == [1, 3]


async def test_the_end_of_the_connection_ends_its_streams(pipe):
    opened: list[Stream] = []
    pipe.incoming.put_nowait(Encoder().syn_stream(1, {}))
    pipe.incoming.put_nowait(b"")
    await Session(pipe, opened.append).run()
    assert await opened[0].read() == b""
    await opened[0].write(b"nobody hears this")
    assert len(pipe.frames) == 1
