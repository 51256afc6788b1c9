# Run by nbdsh, which gives `nbd`. What a client may count on by the protocol, checked from Python.
import errno
import os

A, B, SIZE = os.environ["A"], os.environ["B"], int(os.environ["SIZE"])
BLOCK = 4096


def connect(uri, **settings):
    handle = nbd.NBD()
    handle.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    if settings.get("simple"):
        handle.set_request_structured_replies(False)
    handle.connect_uri(uri)
    return handle


def refused(number, action, *arguments):
    try:
        action(*arguments)
    except nbd.Error as error:
        assert error.errnum == number, f"{action.__name__}: {error}"
    else:
        raise AssertionError(f"{action.__name__}{arguments} was not refused")


def extents(handle, count, offset, flags=0):
    found = []
    handle.block_status(count, offset, lambda context, at, entries, error: found.extend(entries) or 0, flags)
    return [(found[i], found[i + 1]) for i in range(0, len(found), 2)]


def flags_and_sizes(handle):
    assert handle.get_size() == SIZE
    assert handle.can_flush() and handle.can_fua() and handle.can_trim() and handle.can_zero()
    assert handle.can_multi_conn() and handle.can_df() and not handle.is_read_only()
    assert handle.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    assert handle.get_block_size(nbd.SIZE_MINIMUM) == 512
    assert handle.get_block_size(nbd.SIZE_PREFERRED) == BLOCK
    assert handle.get_block_size(nbd.SIZE_MAXIMUM) >= 32 << 20


def writes_of_every_kind(handle):
    handle.pwrite(b"a" * (3 * BLOCK), BLOCK)
    handle.pwrite(b"b" * 512, BLOCK + 1024, nbd.CMD_FLAG_FUA)
    assert handle.pread(BLOCK, BLOCK) == b"a" * 1024 + b"b" * 512 + b"a" * (BLOCK - 1536)
    handle.zero(1024, 2 * BLOCK + 512, nbd.CMD_FLAG_FUA)
    assert handle.pread(BLOCK, 2 * BLOCK) == b"a" * 512 + bytes(1024) + b"a" * (BLOCK - 1536)
    handle.zero(BLOCK, 3 * BLOCK, nbd.CMD_FLAG_NO_HOLE)
    assert handle.pread(BLOCK, 3 * BLOCK) == bytes(BLOCK)
    before = handle.pread(2 * BLOCK, BLOCK)
    handle.trim(2 * BLOCK, BLOCK, nbd.CMD_FLAG_FUA)
    # Trim is advisory: what was there, or zeroes, and the neighbours untouched.
    assert handle.pread(2 * BLOCK, BLOCK) in (before, bytes(2 * BLOCK))
    assert handle.pread(BLOCK, 3 * BLOCK) == bytes(BLOCK) and handle.pread(BLOCK, 0) == bytes(BLOCK)
    handle.flush()


def large_requests(handle):
    data = os.urandom(9 << 20)
    handle.pwrite(data, 1 << 20)
    assert handle.pread(len(data), 1 << 20) == data
    chunks = bytearray(len(data))

    def take(part, offset, status, error):
        assert status == nbd.READ_DATA
        chunks[offset - (1 << 20):offset - (1 << 20) + len(part)] = part
        return 0
    handle.pread_structured(len(data), 1 << 20, take, nbd.CMD_FLAG_DF)
    assert chunks == data


def allocation(handle):
    start = 12 << 20
    handle.pwrite(b"x" * (1 << 20), start)
    handle.zero(1 << 20, start + (1 << 20), nbd.CMD_FLAG_NO_HOLE)
    handle.flush()
    found = extents(handle, 1 << 20, start)
    # An extent may reach beyond what was asked for, and is not cut short without need.
    assert found[0][0] >= 1 << 20 and found[0][1] == 0, found
    assert len(extents(handle, 4 << 20, start, nbd.CMD_FLAG_REQ_ONE)) == 1
    assert sum(length for length, _ in extents(handle, SIZE, 0)) == SIZE
    # Whatever is told to read as zeroes does.
    offset = 0
    for length, kind in extents(handle, SIZE, 0):
        assert not kind & nbd.STATE_ZERO or handle.pread(length, offset) == bytes(length), (offset, length)
        offset += length


def refusals(handle):
    handle.set_strict_mode(0)
    refused(errno.EINVAL, handle.pread, BLOCK, SIZE)
    refused(errno.ENOSPC, handle.pwrite, b"y" * BLOCK, SIZE)
    refused(errno.EINVAL, handle.pread, 100, 0)
    refused(errno.EINVAL, handle.trim, BLOCK, SIZE)
    refused(errno.EINVAL, handle.cache, BLOCK, 0)
    # None of that costs the connection.
    assert len(handle.pread(512, 0)) == 512


def several_connections(uri):
    handles = [connect(uri) for _ in range(4)]
    for number, handle in enumerate(handles):
        handle.pwrite(bytes([number + 1]) * BLOCK, number * BLOCK)
    # A flush on one covers the writes of all, and each sees what the others wrote.
    handles[0].flush()
    for handle in handles:
        for number in range(len(handles)):
            assert handle.pread(BLOCK, number * BLOCK) == bytes([number + 1]) * BLOCK
    cookies = [(handle, buffer, handle.aio_pread(buffer, number * BLOCK))
               for handle in handles for number in range(64) for buffer in [nbd.Buffer(BLOCK)]]
    for handle, _, cookie in cookies:
        while not handle.aio_command_completed(cookie):
            handle.poll(-1)
    assert all(buffer.to_bytearray()[0] == at % 64 + 1 for at, (_, buffer, _) in enumerate(cookies) if at % 64 < 4)
    for handle in handles:
        handle.shutdown()


def simple_replies(uri):
    handle = connect(uri, simple=True)
    assert not handle.get_structured_replies_negotiated()
    handle.pwrite(b"s" * 1536, 512)
    assert handle.pread(2048, 512) == b"s" * 1536 + handle.pread(512, 2048)
    handle.shutdown()


for uri in A, B:
    handle = connect(uri)
    assert handle.get_protocol() == "newstyle-fixed" and handle.get_structured_replies_negotiated()
    for check in flags_and_sizes, writes_of_every_kind, large_requests, allocation, refusals:
        check(handle)
    handle.shutdown()
    several_connections(uri)
    simple_replies(uri)

both = connect(A), connect(B)
both[0].pwrite(b"A" * BLOCK, 0)
both[1].pwrite(b"B" * BLOCK, 0)
assert both[0].pread(BLOCK, 0) == b"A" * BLOCK and both[1].pread(BLOCK, 0) == b"B" * BLOCK
print("all held")
