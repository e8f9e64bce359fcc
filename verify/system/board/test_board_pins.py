"""Compares every pin of every board with the two independent sources that its file names.

amaranth-boards is imported. litex-boards is read with stubs for its imports, because LiteX
itself is not needed to know pins. No package has Digilent's constraints: digilent-xdc holds a
transcript.
"""

import importlib.metadata
import importlib.util
import inspect
import json
import pathlib
import re
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BOARDS = sorted((ROOT / "constraints").glob("*.json"))
LINKS = {
    "ulpi": ("clk", "dir", "nxt", "stp", "rst", "data"),
    "usb_pins": ("d_p", "d_n", "pull_up"),
    "uart": ("rx", "tx"),
    "fifo": ("clkout", "rxf_n", "txe_n", "rd_n", "wr_n", "oe_n", "siwu_n", "data"),
}
CALLED = {"uart": {"uart", "serial"}}  # links with ambiguous names in their packages
THEIRS = {"pull_up": "pullup", "siwu_n": "siwua"}  # our name to the packages'
# Pins of an Ethernet port, and the packages' other names for them.
RGMII = ("rst_n", "rx_clk", "rx_ctl", "rx_data", "tx_clk", "tx_ctl", "tx_data")
RGMII_THEIRS = {"rst": "rst_n", "rx": "rx_clk", "tx": "tx_clk", "rx_ctrl": "rx_ctl", "tx_ctrl": "tx_ctl"}
# Pins of a link that one of the sources lacks: only the other source gives their place.
UNKNOWN = {("litex-boards", "fifo"): {"clkout"}}


def load(path, name):
    """Loads a source file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Said:
    """A package's description of a board: part, oscillator, link pins, LED pins; with polarity
    or None."""

    def __init__(self, part, link, unknown=()):
        self.part = part
        self.clock = None  # pin, MHz
        self.called = CALLED.get(link)
        self.wanted = {THEIRS.get(name, name): name for name in LINKS[link] if name not in unknown}
        self.link = {}  # name to pins
        self.standards = {}  # pin to I/O standard, if the source gives one
        self.reset_low = None
        self.leds = {}  # pin to whether a low level lights it
        self.supply = None  # supply pins: levels to set, and enables
        self.ethernet = {}  # number of an Ethernet port to its pins

    def hear_ethernet(self, number, pins):
        """Keeps the pins of a resource that may belong to an Ethernet port."""
        ours = {RGMII_THEIRS.get(name, name): sites for name, sites in pins.items()}
        self.ethernet.setdefault(number, {}).update({name: ours[name] for name in RGMII if name in ours})

    def is_link(self, called, pins):
        """Returns whether a resource, with its name and pins, is the link; keeps its pins."""
        if not set(self.wanted) <= set(pins) or self.called and called not in self.called:
            return False
        self.link = {ours: pins[theirs] for theirs, ours in self.wanted.items()}
        return True


def in_amaranth(path, part, link):
    """Reads a file of amaranth-boards for the board with that part and that kind of link."""
    package = importlib.import_module("amaranth_boards." + path.stem)
    platforms = [getattr(package, name) for name in package.__all__]
    platform = next(p for p in platforms if part.startswith(p.device))
    said = Said(f"{platform.device}-{platform.speed}{platform.package}", link)
    for resource in platform.resources:
        names = {sub.name: sub.ios[0] for sub in resource.ios if hasattr(sub, "ios")}
        if resource.name == platform.default_clk:
            # For a differential clock, this is the positive pin.
            pins = getattr(resource.ios[0], "p", resource.ios[0])
            said.clock = (pins.names[0], round(resource.clock.frequency / 1e6))
        elif said.is_link(resource.name, {name: getattr(pins, "names", None) for name, pins in names.items()}):
            said.reset_low = names["rst"].invert if "rst" in names else None
        elif resource.name == "vccio_ctrl":
            said.supply = (names["pdm"].names, names["en"].names)
        elif resource.name == "eth_rgmii":
            said.hear_ethernet(resource.number, {name: pins.names for name, pins in names.items()})
            assert names["rst"].invert
        elif "led" in resource.name:
            for pins in names.values() or resource.ios[:1]:
                said.leds.update(dict.fromkeys(pins.names, pins.invert))
    return said


class Stand:
    """Stands in for any import of a litex-boards file; keeps its arguments."""

    def __init__(self, *arguments, **named):
        self.arguments = arguments


def in_litex(path, part, link):
    """Reads a file of litex-boards, which has no polarity."""
    kinds = {name: type(name, (Stand,), {}) for name in ("Pins", "Subsignal", "IOStandard", "Misc", "Drive")}
    heard = {}

    class Platform:
        def __init__(self, device, io, *rest, **named):
            heard.update(device=device, io=io)
            self.toolchain = Stand()  # a file may pass it more arguments

        def add_platform_command(self, *command):
            pass

    for name, members in {
        "litex": {},
        "litex.build": {},
        "litex.build.generic_platform": kinds,
        "litex.build.lattice": {"LatticeECP5Platform": Platform},
        "litex.build.lattice.programmer": {"OpenOCDJTAGProgrammer": Stand, "UJProg": Stand},
        "litex.build.xilinx": {"Xilinx7SeriesPlatform": Platform, "VivadoProgrammer": Stand},
        "litex.build.openocd": {"OpenOCD": Stand},
        "litex.build.openfpgaloader": {"OpenFPGALoader": Stand},
        "litex.build.dfu": {"DFUProg": Stand},
    }.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        sys.modules[name] = module
    platform = load(path, "board_of_litex").Platform
    for name in [name for name in sys.modules if name.split(".")[0] == "litex"]:
        del sys.modules[name]
    # A board with several FPGA options selects one by an argument: family and size, or family
    # alone.
    device = inspect.signature(platform).parameters.get("device")
    if device is None:
        platform()
    else:
        usual = device.default
        platform(device="-".join(part.split("-")[: usual.count("-") + 1]) if usual.startswith("LFE5U") else usual)
    # Vivado's spelling xc7a200t-sbg484-1 means XC7A200T-1SBG484.
    heard["device"] = re.sub(r"^(xc7\w+)-(\w+)-(\d)$", r"\1-\3\2", heard["device"])
    if heard["device"].startswith("xc7"):
        heard["device"] = heard["device"].upper()

    def sites(items):
        return [s for i in items if isinstance(i, kinds["Pins"]) for a in i.arguments for s in a.split()]

    said = Said(heard["device"], link, UNKNOWN.get(("litex-boards", link), ()))
    for name, number, *items in heard["io"]:
        subs = {i.arguments[0]: sites(i.arguments[1:]) for i in items if isinstance(i, kinds["Subsignal"])}
        for standard in (i.arguments[0] for i in items if isinstance(i, kinds["IOStandard"])):
            said.standards.update(dict.fromkeys([*sites(items), *sum(subs.values(), [])], standard))
        if name == platform.default_clk_name:
            said.clock = (sites(items)[0], round(1e3 / platform.default_clk_period))
        elif said.is_link(name, subs):
            pass
        elif name in ("eth", "eth_clocks"):
            said.hear_ethernet(number, subs)
        elif name == "vccio_ctrl":
            said.supply = (subs["pdm"], subs["en"])
        elif "led" in name and name != "oled":
            said.leds.update(dict.fromkeys([*sites(items), *sum(subs.values(), [])]))
    return said


# Digilent's names for the pins of a FIFO bridge.
DPTI = {"clkout": "clko", "rxf_n": "rxen", "txe_n": "txen", "rd_n": "rdn", "wr_n": "wrn", "oe_n": "oen", "siwu_n": "siwun"}


def in_digilent(path, part, link):
    """Reads the transcript of Digilent's constraints, which has no polarity."""
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    facts = {line[0]: line[1] for line in lines if len(line) == 2}
    pins = {name: (site, standard, called) for name, site, standard, called in (line for line in lines if len(line) == 4)}
    said = Said(facts["part"], link)
    said.clock = (pins["sysclk"][0], int(facts["clock"]))
    said.link = {ours: [pins[f"prog_{theirs}"][0]] for ours, theirs in DPTI.items()}
    said.link["data"] = [pins[f"prog_d[{i}]"][0] for i in range(8)]
    said.leds = {site: None for name, (site, _, _) in pins.items() if name.startswith("led")}
    said.standards = {site: standard for site, standard, _ in pins.values()}
    for clock in ("sysclk", "prog_clko"):
        assert "_MRCC_" in pins[clock][2], f"{clock} is at no pin for a clock"
    return said


READERS = {"amaranth-boards": in_amaranth, "litex-boards": in_litex, "digilent-xdc": in_digilent}


def located(source, path):
    """Returns the path of a source's file: in a package of that version, or here."""
    package, version = source.split()
    if package == "digilent-xdc":
        text = (ROOT / "verify/system/board" / package / path).with_suffix(".txt")
        assert f"{package} at {version}, {path}" in text.read_text()
        return text
    assert importlib.metadata.version(package) == version
    return pathlib.Path(importlib.metadata.distribution(package).locate_file(path))


@pytest.mark.parametrize("file", BOARDS, ids=lambda f: f.stem)
def test_pins_are_those_of_two_sources(file):
    board = json.loads(file.read_text())
    assert len({source.split()[0] for source in board["sources"]} & set(READERS)) == 2
    assert len(board["sources"]) == 2
    link = next(kind for kind in LINKS if kind in board)
    known = [set(LINKS[link]) - UNKNOWN.get((source.split()[0], link), set()) for source in board["sources"]]
    assert set.union(*known) == set(LINKS[link])
    for source, path in board["sources"].items():
        package = source.split()[0]
        said = READERS[package](located(source, path), board["part"], link)
        # An order number may end in a letter for the temperature range.
        assert re.fullmatch(re.escape(said.part) + "[CI]?", board["part"]), source
        assert (board["clock"]["pin"], board["clock"]["mhz"]) == said.clock, source
        pins = {name: board[link][name] for name in LINKS[link] if name not in UNKNOWN.get((package, link), ())}
        if link == "usb_pins":
            # If a package names two pull-ups, the first belongs to D+.
            said.link["pull_up"] = said.link["pull_up"][:1]
        assert {name: p if isinstance(p, list) else [p] for name, p in pins.items()} == said.link, source
        if said.reset_low is not None:
            assert board[link]["reset"] == ("low" if said.reset_low else "high"), source
        for led in ("link", "traffic", "error"):
            pin = board["leds"][led]
            assert pin in said.leds, f"{source}: no LED at {pin}"
            if said.leds[pin] is not None:
                assert board["leds"]["lit"] == ("low" if said.leds[pin] else "high"), source
        for pin in board["leds"].get("held_high", []) + board["leds"].get("held_low", []):
            assert pin in said.leds, f"{source}: no LED at {pin}"
        if "vivado" in board:  # for other boards, the packages give standards of other tools
            leds = [board["leds"][led] for led in ("link", "traffic", "error")]
            for of, sites in (("clock", [said.clock[0]]), (link, sum(said.link.values(), [])), ("leds", leds)):
                assert {said.standards[site] for site in sites} == {board[of]["io"]}, f"{source}: {of}"
        if "ethernet" in board:
            ours = [{name: [p] if isinstance(p, str) else p for name, p in port.items()} for port in board["ethernet"]["ports"]]
            assert ours == [said.ethernet[i] for i in sorted(said.ethernet)], source
        if "supply" in board or said.supply:
            assert (board["supply"]["set"], [board["supply"]["enable"]]) == said.supply, source


@pytest.mark.parametrize("file", [file for file in BOARDS if "ethernet" in json.loads(file.read_text())], ids=lambda f: f.stem)
def test_delays_are_those_of_litex(file):
    """The FPGA's delays at RGMII pins are those with which LiteX's own targets reach the same PHYs."""
    board = json.loads(file.read_text())
    source, path = next((source, path) for source, path in board["sources"].items() if source.startswith("litex-boards"))
    target = located(source, path.replace("platforms", "targets")).read_text()
    call = re.search(r"LiteEthPHYRGMII\(\s*clock_pads(.*?)\)\n", target, re.DOTALL)[1]
    for way in ("tx", "rx"):
        given = re.search(rf"{way}_delay *= *([\d.e-]+)", call)
        seconds = float(given[1]) if given else 2e-9  # LiteEth's default
        assert board["ethernet"][f"{way}_delay_ps"] == round(seconds * 1e12), way
