"""The wheel, and what the package shares with the header."""

import os
import re
import subprocess
import sys
import venv
import zipfile

import numpy
import tributary
from tributary import errors


def test_import_is_light():
    """The import loads neither torch nor the library, so a program may still fork."""
    program = """
import sys, tributary
assert "torch" not in sys.modules and "multiprocessing" not in sys.modules
assert "libtributary" not in open("/proc/self/maps").read()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_errors_are_those_of_the_header(root):
    header = (root / "driver/capi/tributary.h").read_text()
    kinds = {int(number): name for name, number in re.findall(r"TRIBUTARY_ERROR_(\w+) = (\d+)", header)}
    assert kinds.keys() == errors._KINDS.keys()
    for number, name in kinds.items():
        expected = "Tributary" if name == "OTHER" else name.title().replace("_", "")
        assert errors._KINDS[number].__name__ == expected + "Error"
    assert errors.make(16, "text", 0b101).ranks == (0, 2)


def test_everything_is_documented():
    for name in tributary.__all__:
        thing = getattr(tributary, name)
        assert thing.__doc__, name
        for part, value in vars(thing).items() if isinstance(thing, type) else ():
            assert (
                part.startswith("_") or not callable(value) or value.__doc__ or part == "count"
            ), f"{name}.{part}"


def test_wheel(wheel, tmp_path):
    """The wheel installs into a fresh environment, and works from any folder."""
    assert re.fullmatch(r"tributary-0\.1\.0-py3-none-\w+\.whl", wheel.name) and "any" not in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert "tributary/py.typed" in names and "tributary/libtributary.so" in names
    fresh = tmp_path / "fresh"
    venv.create(fresh)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        fresh / "bin/python",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        wheel,
    ]
    subprocess.run(install, check=True, timeout=60, env=environment)
    program = f"""
import sys
sys.path.append({os.path.dirname(os.path.dirname(numpy.__file__))!r})  # NumPy alone is from here
import numpy as np, tributary
assert tributary.__file__.startswith({str(fresh)!r}) and tributary.__version__ == "0.1.0"
with tributary.open("cpu:", workers=2) as card, card.job() as job:
    print(job.reduce([np.ones(3, np.float32)] * 2).tolist())
"""
    out = subprocess.run(
        [fresh / "bin/python", "-c", program],
        check=True,
        timeout=60,
        env=environment,
        cwd="/",
        capture_output=True,
    )
    assert out.stdout == b"[2.0, 2.0, 2.0]\n"
