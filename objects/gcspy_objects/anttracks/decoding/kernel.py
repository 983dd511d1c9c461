"""Decoding as one loop over the words of a chunk, for `machine_code`. `layout` defines the words. Equivalent to `vectors`.

``compiled/decode.c`` has it in C. Without that library numba compiles it.

It calls nothing, so that numba's cache can be trusted, and is one function, because each call in it
would cost as much as it saves.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIGNATURE", "decode"]

_I32, _I64, _U8 = "int32[::1]", "int64[::1]", "uint8[::1]"
SIGNATURE: Final = (
    f"int64({_I32}, {_I64}, {_I32}, {_I64}, int64, {_I64}, {_I64}, "
    f"{_I32}, {_I32}, {_I32}, {_U8}, {_I32}, {_U8}, {_I64}, {_I64}, {_I64}, {_U8}, {_U8}, "
    f"{_U8}, {_U8}, {_U8}, {_I32}, {_I32}, {_I32}, {_I64}, {_I64}, {_I64}, {_I32}, {_I32}, {_I32}, {_I32}, {_U8}, {_I64})"
)


def decode(
    words: NDArray[np.int32],
    bounds: NDArray[np.int64],
    owners: NDArray[np.int32],
    state: NDArray[np.int64],
    anchor: int,
    fixed_words: NDArray[np.int64],
    spare_bits: NDArray[np.int64],
    small_sites: NDArray[np.int32],
    big_sites: NDArray[np.int32],
    site_type: NDArray[np.int32],
    site_flags: NDArray[np.uint8],
    type_rows: NDArray[np.int32],
    type_kind: NDArray[np.uint8],
    instance_bytes: NDArray[np.int64],
    header_bytes: NDArray[np.int64],
    element_bytes: NDArray[np.int64],
    filler_type: NDArray[np.uint8],
    internal_site: NDArray[np.uint8],
    kind: NDArray[np.uint8],
    detail: NDArray[np.uint8],
    flags: NDArray[np.uint8],
    thread: NDArray[np.int32],
    buffer: NDArray[np.int32],
    offset: NDArray[np.int32],
    address: NDArray[np.int64],
    to: NDArray[np.int64],
    size: NDArray[np.int64],
    type_: NDArray[np.int32],
    site: NDArray[np.int32],
    length: NDArray[np.int32],
    pointer_record: NDArray[np.int32],
    pointer_kind: NDArray[np.uint8],
    pointer_value: NDArray[np.int64],
) -> int:
    """Decode the events of whole buffers, up to the first that is not valid.

    Args:
        words: (w,) the payloads, one after the other.
        bounds: (b + 1,) where in `words` each buffer begins; the end.
        owners: (b,) row of each buffer's thread.
        state: (5,) in and out: base of relative addresses; out: `Problem`, the word at which the event with it begins, its buffer, pointers
            written.
        anchor: 1 if a word follows each event, else 0.
        fixed_words: `tables.FIXED_WORDS`.
        spare_bits: `tables.SPARE_BITS`; those after it are the fields of `tables.Tables` and of `tables.Columns`.

    Returns:
        How many records were written.
    """
    low, high, limit = 0xFFFFFFFF, 0x3FFFFFFF, 0x7FFFFFFF
    base, n, pointers = state[0], 0, 0
    problem, i, b = 0, 0, 0
    for b in range(len(owners)):
        i, end = bounds[b], bounds[b + 1]
        while i < end:
            w = words[i] & low
            event = w >> 26
            need = fixed_words[event]
            if need == 0:
                problem = 1
                break
            if i + need > end:
                problem = 2
                break
            k, d, f, a, t, s, ty, si, le = 0, 0, 0, 0, 0, 0, 0, 0, 0
            at = i + 1
            pointers_before = pointers
            if 15 <= event <= 29 or event == 36 or event == 37:
                # A site, and an object of which the size is known.
                if w & 0x800000:
                    number = w & 0x7FFFFF
                    si = big_sites[number] if number < len(big_sites) else 0
                    small = False
                else:
                    si = small_sites[(w >> 8) & 0x7FFF]
                    le = w & 0xFF
                    small = True
                if si == 0:
                    problem = 3
                    break
                snapshot = event >= 36
                f = site_flags[si]
                # Optional parts of an event make it longer by this many words.
                if not snapshot:
                    if event == 15:
                        f |= 2
                    elif event <= 19:
                        f |= 16
                    has_address = event not in (19, 23, 28, 29)
                    has_type = event in (15, 17, 21, 26, 29)
                    k = 1 if has_address else 2
                    if event in (18, 22, 27):
                        f |= 32
                    if has_address:
                        if (words[at + 1] & low) > high:
                            problem = 5
                            break
                        a = (words[at] & low) | ((words[at + 1] & low) << 32)
                        at += 2
                    if small and le == 255:
                        need += 1
                        if i + need > end:
                            problem = 2
                            break
                        le = words[at] & low
                        at += 1
                else:
                    has_type = True
                    k = 14 if event == 36 else 15
                    le = 0
                if has_type:
                    number = words[at] & low
                    at += 1
                    ty = type_rows[number] if number < len(type_rows) else 0
                else:
                    ty = site_type[si]
                tk = type_kind[ty]
                if tk == 0:
                    problem = 4
                    break
                if snapshot:
                    if (words[at + 1] & low) > high or (
                        event == 36 and (words[at + 3] & low) > high
                    ):
                        problem = 5
                        break
                    a = (words[at] & low) | ((words[at + 1] & low) << 32)
                    at += 2
                    t = a
                    if event == 36:
                        t = (words[at] & low) | ((words[at + 1] & low) << 32)
                        at += 2
                    if tk == 2:
                        need += 1
                        if i + need > end:
                            problem = 2
                            break
                        le = words[at] & low
                if tk == 3 and has_type and event != 29:
                    need += 1
                    if i + need > end:
                        problem = 2
                        break
                    s = words[at] & low
                elif tk == 2:
                    if le > limit:
                        problem = 6
                        break
                    s = (header_bytes[ty] + element_bytes[ty] * le + 7) & ~7
                else:
                    s = instance_bytes[ty]
                if tk != 2:
                    if le != 0:
                        f |= 128
                    le = 0
                if internal_site[si] and filler_type[ty]:
                    f |= 1
            elif 30 <= event <= 35 or event >= 39:
                # A move, a stay, or pointers.
                if event >= 39:
                    # w bits 0..23 are kinds of pointers.
                    if event == 39:
                        k = 10
                    elif event == 40 or event == 41:
                        k = 11
                    elif event == 42:
                        k = 13
                    else:
                        k = 23
                        d = event - 43
                elif event == 30:
                    k = 10
                elif event == 34:
                    k = 12
                    le = w & 0xFFFFFF
                elif event == 35:
                    k = 13
                else:
                    k = 11
                if k == 11:
                    d = (w >> 24) & 3
                if event == 33:
                    a = base + ((w & 0xFFFFFF) >> 2) * 8
                elif event == 32 or event == 41:
                    a = base + (words[at] & low) * 8
                    at += 1
                else:
                    if (words[at + 1] & low) > high:
                        problem = 5
                        break
                    a = (words[at] & low) | ((words[at + 1] & low) << 32)
                    at += 2
                    if k == 10 or k == 12:
                        if (words[at + 1] & low) > high:
                            problem = 5
                            break
                        t = (words[at] & low) | ((words[at + 1] & low) << 32)
                        at += 2
                if event >= 39:
                    for shift in range(22, -2, -2):
                        pk = (w >> shift) & 3
                        if pk == 1 or pk == 2:
                            need += pk
                    if i + need > end:
                        problem = 2
                        break
                    # The target of the previous pointer: from the object's new place, until there
                    # is an address.
                    target = 0
                    known = False
                    for shift in range(22, -2, -2):
                        pk = (w >> shift) & 3
                        value = 0
                        if pk == 0:
                            continue
                        if pk == 1:
                            target -= 8 * words[at]
                            at += 1
                            value = target
                            if known:
                                pk = 2
                        elif pk == 2:
                            if (words[at + 1] & low) > high:
                                problem = 5
                                break
                            value = (words[at] & low) | ((words[at + 1] & low) << 32)
                            at += 2
                            target = value
                            known = True
                        pointer_record[pointers] = n
                        pointer_kind[pointers] = pk
                        pointer_value[pointers] = value
                        pointers += 1
                    if problem:
                        pointers = pointers_before
                        break
            elif event == 0:
                k = 9
            elif event == 1:
                if (words[at + 1] & low) > high:
                    problem = 5
                    break
                k = 22
                s = (words[at] & low) | ((words[at + 1] & low) << 32)
            elif event <= 3:
                if (words[at + 2] & low) > high or (words[at + 4] & low) > high:
                    problem = 5
                    break
                k = 5 if event == 2 else 6
                d = (w >> 16) & 0xFF
                ty = (w >> 8) & 0xFF
                f = 4 if w & 1 else 0
                le = words[at] & low
                s = (words[at + 1] & low) | ((words[at + 2] & low) << 32)
                a = (words[at + 3] & low) | ((words[at + 4] & low) << 32)
            elif event == 4:
                k = 7
                le = w & 0xFFFFFF
                s = words[at] & low
            elif event == 5:
                k = 8
                le = w & 0xFFFFFF
            elif event == 6 or event == 9:
                if (words[at + 2] & low) > high or (words[at + 4] & low) > high:
                    problem = 5
                    break
                k = 16
                f = 8 if event == 9 else 0
                le = words[at] & low
                a = (words[at + 1] & low) | ((words[at + 2] & low) << 32)
                s = (words[at + 3] & low) | ((words[at + 4] & low) << 32)
            elif event == 7:
                k = 17
                d = (w >> 18) & 0xFF
                ty = (w >> 10) & 0xFF
                le = words[at] & low
            elif event == 8:
                k = 18
                le = words[at] & low
            elif event == 10:
                if (words[at + 2] & low) > high:
                    problem = 5
                    break
                k = 19
                le = words[at] & low
                s = (words[at + 1] & low) | ((words[at + 2] & low) << 32)
            elif event == 11 or event == 12:
                if (words[at + 1] & low) > high:
                    problem = 5
                    break
                a = (words[at] & low) | ((words[at + 1] & low) << 32)
                k = 21
                if event == 11:
                    k = 20
                    kind_of_thread = (w >> 8) & 0xFFFF
                    d = kind_of_thread if kind_of_thread < 255 else 255
                    # The name ends with the first word that has a NUL, or is as long as may be.
                    more = 0
                    while more < 11:
                        x = words[i + need - 1] & low
                        if (
                            (x & 0xFF) == 0
                            or (x & 0xFF00) == 0
                            or (x & 0xFF0000) == 0
                            or (x & 0xFF000000) == 0
                        ):
                            break
                        need += 1
                        more += 1
                        if i + need > end:
                            problem = 2
                            break
                    if problem:
                        break
            else:
                if (words[at + 1] & low) > high or (words[at + 3] & low) > high:
                    problem = 5
                    break
                k = 3 if event == 13 else 4
                s = (words[at] & low) | ((words[at + 1] & low) << 32)
                a = (words[at + 2] & low) | ((words[at + 3] & low) << 32)
            if i + need + anchor > end:
                problem = 2
            elif le > limit:
                problem = 6
            if problem:
                pointers = pointers_before
                break
            if event == 2 or event == 3:
                base = a
            if w & spare_bits[event]:
                f |= 128
            kind[n] = k
            detail[n] = d
            flags[n] = f
            thread[n] = owners[b]
            buffer[n] = b
            offset[n] = (i - bounds[b]) * 4
            address[n] = a
            to[n] = t
            size[n] = s
            type_[n] = ty
            site[n] = si
            length[n] = le
            n += 1
            i += need + anchor
        if problem:
            break
    state[0] = base
    state[1] = problem
    state[2] = i
    state[3] = b
    state[4] = pointers
    return n
