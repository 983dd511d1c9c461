"""Events as bytes and back: all kinds and encodings, with and without machine code, and in C as a writer has it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_objects.gctrace.address_model import LIBRARY, AddressParameters
from gcspy_objects.gctrace.columns import ColumnError
from gcspy_objects.gctrace.events import EventColumns, decode_events, encode_events
from hypothesis import given, settings
from hypothesis import strategies as st

from gcspy_compiled.libraries import HEADERS, VARIABLE
from tests.objects.gctrace.made import differences, event_columns, random_events

PARAMETERS = [
    None,
    AddressParameters(4, 24, 8),
    AddressParameters(3, 8, 0),
    AddressParameters(4, 1, 0),
]


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 400),
    seed=st.integers(0, 1 << 32),
    parameters=st.sampled_from(PARAMETERS),
    compressed=st.booleans(),
)
def test_events_come_back(
    count: int, seed: int, parameters: AddressParameters | None, *, compressed: bool
) -> None:
    events = random_events(count, seed)
    payload = encode_events(events, parameters, compressed=compressed)
    assert differences(decode_events(payload, count, one_thread=True), events) == []


@pytest.mark.parametrize("parameters", PARAMETERS[1:])
def test_the_model_in_python_and_in_c_agree(
    parameters: AddressParameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    if LIBRARY.loop("predict", "int64(int64)") is None:
        pytest.skip("the library was not built")
    events = random_events(3000, 7)
    by_machine = encode_events(events, parameters)
    found = decode_events(by_machine, 3000, one_thread=True)
    monkeypatch.setenv(VARIABLE, "no")
    assert encode_events(events, parameters) == by_machine
    assert differences(decode_events(by_machine, 3000, one_thread=True), found) == []


def test_a_reused_block_costs_nothing() -> None:
    count = 1000
    events = event_columns(
        [1, 24] * count,
        address=[0x7F00_1000, 0x7F00_1000] * count,
        size=[100, 0] * count,
        site=[5, 0] * count,
    )
    payload = encode_events(events, AddressParameters(4, 24, 8), compressed=False)
    assert (
        len(payload) < 2 * 2 * count + 200
    )  # a byte for each kind, one for each prediction or age


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 50))
def test_damaged_bytes_are_refused_or_read(data: st.DataObject, seed: int) -> None:
    count = 40
    payload = bytearray(encode_events(random_events(count, seed), PARAMETERS[1], compressed=False))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at] ^= data.draw(st.integers(1, 255))
    cut = (
        payload[: data.draw(st.integers(0, len(payload)))] if data.draw(st.booleans()) else payload
    )
    try:
        found = decode_events(bytes(cut), count, one_thread=True)
    except ColumnError:
        return
    assert len(found) == count


def test_numbers_in_a_table_allocate_nothing() -> None:
    payload = (
        bytes.fromhex("0100")
        + bytes([1, 0, 0, 0])
        + (0xFFFFFFFF).to_bytes(4, "little")
        + (8).to_bytes(4, "little")
        + bytes(8)
    )
    with pytest.raises(ColumnError, match=r"4,294,967,295 kinds; expected 5"):
        decode_events(payload, 5, one_thread=True)


def _golden() -> EventColumns:
    return event_columns(
        [1, 1, 24, 10, 1, 24, 22],
        address=[0x1000, 0x1020, 0x1000, 0x1020, 0x1000, 0x9000, 0],
        to=[0, 0, 0, 0x2000, 0, 0, 0],
        size=[24, 24, 0, 0, 20, 0, 7],
        site=[1, 2, 0, 0, 1, 0, 0],
        stamp=[0, 0, 0, 5, 5, 5, 9],
    )


def test_golden_bytes_stay(tmp_path: Path) -> None:
    payload = encode_events(_golden(), AddressParameters(4, 24, 8), compressed=True, by_site=False)
    stored = Path(__file__).parents[3] / "objects/vectors/events.bin"
    assert payload == stored.read_bytes()
    assert differences(decode_events(stored.read_bytes(), 7, one_thread=True), _golden()) == []


PROGRAM = r"""
#include "object_trace.h"
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    int64_t head[6];
    if (fread(head, 8, 6, stdin) != 6)
        return 1;
    int64_t n = head[0];
    uint8_t *kind = malloc(n), *detail = malloc(n);
    int64_t *address = malloc(8 * n), *to = malloc(8 * n), *size = malloc(8 * n);
    int32_t *type = malloc(4 * n), *site = malloc(4 * n), *length = malloc(4 * n);
    size_t got = fread(kind, 1, n, stdin) + fread(detail, 1, n, stdin) + fread(address, 8, n, stdin) + fread(to, 8, n, stdin) +
                 fread(size, 8, n, stdin) + fread(type, 4, n, stdin) + fread(site, 4, n, stdin) + fread(length, 4, n, stdin);
    if (got != (size_t)(8 * n))
        return 2;
    struct gct_events events = {n, kind, detail, address, to, size, type, site, length, NULL};
    struct gct_manner manner = {(int)head[1], (int)head[2], (int)head[3], (int)head[4], (int)head[5]};
    struct gct_room room;
    gct_room_init(&room, malloc(gct_room_bytes(n)), n);
    uint8_t *out = malloc(gct_payload_bytes(n));
    uint32_t told, table[8][256];
    size_t bytes = gct_encode(&events, &manner, &room, out, &told);
    uint8_t header[GCT_PREFIX_BYTES + GCT_BLOCK_BYTES];
    gct_crc_tables(table);
    gct_block(gct_prefix(header) , table, GCT_EVENTS, GCT_PLAIN, (uint32_t)bytes, out, (uint32_t)bytes, 3, told, 100, 1LL << 40);
    fwrite(header, 1, sizeof header, stdout);
    fwrite(out, 1, bytes, stdout);
    return 0;
}
"""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "encoder.c").write_text(PROGRAM)
    subprocess.run(
        [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-sign-compare", f"-I{HEADERS}", "-o", folder / "encoder", folder / "encoder.c"],
        check=True,
        timeout=60,
    )  # fmt: skip
    return folder / "encoder"


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("parameters", PARAMETERS[:2])
def test_a_writer_in_c_writes_the_same(
    encoder: Path, parameters: AddressParameters | None, *, compressed: bool
) -> None:
    from gcspy_objects.gctrace.blocks import make_block, make_prefix
    from gcspy_objects.gctrace.layout import BlockKind

    events = random_events(2000, 3)
    events.flags[:] = 0  # a writer in C has none
    events.stamp[:] = 0
    wanted = encode_events(events, parameters, compressed=compressed, by_site=False)
    head = np.array(
        [2000, *(parameters or (4, 0, 0)), int(parameters is not None), int(compressed)], np.int64
    )
    columns: list[np.ndarray[Any, Any]] = [
        head,
        events.kind,
        events.detail,
        events.address,
        events.to,
        events.size,
        events.type,
        events.site,
        events.length,
    ]
    done = subprocess.run(
        [encoder],
        input=b"".join(one.tobytes() for one in columns),
        capture_output=True,
        check=True,
        timeout=60,
    )
    block = make_block(
        BlockKind.EVENTS,
        wanted,
        thread=3,
        events=2000,
        first_stamp=100,
        last_stamp=1 << 40,
        compress=False,
    )
    assert (
        hashlib.sha256(done.stdout).hexdigest() == hashlib.sha256(make_prefix() + block).hexdigest()
    )
