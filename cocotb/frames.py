"""Reads the hand-written hex frames of driver/wire/testdata/frames.txt, which Go, Python and gateware share."""

import json
import pathlib

import zwire

FILE = pathlib.Path(__file__).resolve().parent.parent / "driver" / "wire" / "testdata" / "frames.txt"


def load():
    """Returns name: (bytes of the frame, header fields, payload bytes), in the order of the file."""
    frames = {}
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    for text, fields in zip(lines[0::2], lines[1::2], strict=True):
        name, digits = text.split(":")
        header = json.loads(fields)
        payload = b"".join(int(e, 16).to_bytes(4, "little") for e in header.pop("payload"))
        for mask in ("mask", "receivers"):
            header[mask] = int(header[mask], 16)
        header["kind"] = _kind_number(header["kind"])
        frames[name] = (bytes.fromhex(digits.replace("|", "")), header, payload)
    return frames


def _kind_number(name):
    return next(number for number, row in zwire.KINDS.items() if row[0] == name)
