"""The generated code of the daemon's protocol is what its .proto files give today."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "driver/daemon/protocol"


def test_protocol_is_current(tmp_path):
    subprocess.run(
        ["go", "generate", "./driver/daemon/protocol/..."], cwd=ROOT, env=os.environ | {"OUT": str(tmp_path)}, check=True
    )
    kept = {path.name: path for path in PROTOCOL.rglob("*.pb.go")}
    assert sorted(kept) == sorted(path.name for path in tmp_path.iterdir())
    for name, path in kept.items():
        where = path.relative_to(ROOT)
        assert path.read_bytes() == (tmp_path / name).read_bytes(), f"{where}: run go generate ./{where.parent}"
