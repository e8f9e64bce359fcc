"""Cards of all formats, as hwgen emits them: narrow and wide beats, results wider than
contributions.

Sends packets of random and special elements one at a time, and compares each with the Python
model, which sums in whole numbers. Also checks the job registers' counts of NaNs, infinities and
overflow.
"""

import random

import cocotb
import pytest

import zwire
from cards import BareCard, LinkCard, manifest, run_card, usual
from streams import PATTERNS
from traffic import TOKEN, Traffic, data_header, elements

CARDS = {
    "bf16": ["-lanes", 2, "-workers", 3, "-format", "bf16"],
    "bf16_fp32": ["-lanes", 4, "-workers", 2, "-format", "bf16", "-result", "fp32"],
    "fp16_fused": ["-lanes", 1, "-workers", 5, "-format", "fp16", "-sum", "fused"],
    "fp32_fused": ["-lanes", 2, "-workers", 3, "-sum", "fused"],
    "fp8e4m3": ["-lanes", 1, "-workers", 3, "-format", "fp8e4m3"],
    "fp8e4m3_fp16_fused": ["-lanes", 2, "-workers", 3, "-format", "fp8e4m3", "-result", "fp16", "-sum", "fused"],
    "fp8e5m2_fp32": ["-lanes", 1, "-workers", 4, "-format", "fp8e5m2", "-result", "fp32"],
    "int32": ["-lanes", 1, "-workers", 5, "-format", "int32"],
    "int32_saturate": ["-lanes", 2, "-workers", 3, "-format", "int32", "-saturate"],
    "fp32_exact": ["-lanes", 2, "-workers", 3, "-sum", "exact"],
    "bf16_exact": ["-lanes", 4, "-workers", 5, "-format", "bf16", "-sum", "exact"],
    "fp16_exact": ["-lanes", 1, "-workers", 4, "-format", "fp16", "-sum", "exact"],
    "bf16_fp32_exact": ["-lanes", 1, "-workers", 3, "-format", "bf16", "-result", "fp32", "-sum", "exact"],
    "one_worker": ["-lanes", 1, "-workers", 1, "-format", "fp8e5m2", "-result", "bf16", "-sum", "fused"],
}
SHELLS = {"none": ["-registers", "bus"], "stream": ["-link", 64]}


@pytest.mark.parametrize("card", usual(CARDS, "bf16_fp32_exact", "fp16_exact", "fp8e5m2_fp32", "fp16_fused", "int32"))
def test_top_formats(card):
    # The shells alternate: each has beats narrower and wider than a link's word.
    shell = list(SHELLS)[list(CARDS).index(card) % 2]
    lanes = CARDS[card][1]
    sizes = ["-chunk", 6 * lanes, "-window", 2, "-shell", shell, *SHELLS[shell]]
    run_card(f"formats_{card}", [*CARDS[card], *sizes])


def connect(dut, idle="never", stall="never"):
    shell = BareCard if manifest()["shell"] == "none" else LinkCard
    return shell(dut, PATTERNS[idle], PATTERNS[stall])


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "never"), ("bursts", "at_random")]))
async def answers_like_the_model(dut, idle, stall):
    card = connect(dut, idle, stall)
    await card.reset()
    traffic = Traffic(card, random.Random(f"{idle} {stall}"))
    for _ in range(60):
        await traffic.step()
    await card.check_registers()


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def every_register_reads_as_the_model_says(dut):
    card = connect(dut)
    await card.reset()
    await card.check_registers()
    assert await card.read("CONFIG_HASH") == int(card.manifest["config_hash"], 16)


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def the_first_of_a_job_is_kept_until_the_next(dut):
    """Chunks without exceptions, then some with exceptions; the registers keep them until the
    next set-up."""
    rng = random.Random(3)
    card = connect(dut)
    await card.reset()
    zeros = bytes(card.format.bytes * card.chunk)
    large = card.format.payload([card.format.largest if card.format.float else 2**31 - 1] * card.chunk)
    over = card.ports > 1 and card.manifest["format"] == card.manifest["result"]
    for epoch, strange in enumerate([0, card.chunk, 0], 1):
        await card.set_up(epoch, window=1, first=100 * epoch, token=TOKEN)
        for vid in range(100 * epoch, 100 * epoch + 6):
            for rank in range(card.ports):
                late = vid % 100 > 2
                payload = large if late and strange else zeros
                if late and strange and vid % 100 > 3:
                    payload = elements(rng, card.chunk, card.format, special=0.5)
                await card.exchange(rank, data_header(card, rank, vid, epoch), payload)
        for name in ("JOB_OVERFLOW", "JOB_NONFINITE_OUT"):
            place = name.replace("JOB_", "JOB_FIRST_").replace("NONFINITE_", "")
            count, first = await card.read(name), await card.read(place)
            assert (count > 0) == (first >> 63 == 1)
            if name == "JOB_OVERFLOW" and over:
                assert first == (1 << 63 | 100 * epoch + 3 if strange else 0)
        await card.check_registers()
    for rank in range(card.ports):
        header = {"kind": zwire.KIND_FINISH, "epoch": 3, "rank": rank, "vid": 306}
        await card.exchange(rank, header)
    await card.check_registers()
