"""CRC-32C as driver/wire/NETWORK.md defines it."""

POLYNOMIAL = 0x1EDC6F41  # highest term first, without x^32


def _step(register):
    """Returns the register after a byte of zeros, a bit at a time."""
    reflected = int(f"{POLYNOMIAL:032b}"[::-1], 2)
    for _ in range(8):
        register = register >> 1 ^ (reflected if register & 1 else 0)
    return register


BYTES = [_step(byte) for byte in range(256)]


def crc32c(message):
    """Returns the CRC of the bytes as a number; a datagram has its low byte first.

    Reflected: the lowest bit of a byte comes first, and the highest term is the register's lowest bit.
    """
    register = 0xFFFFFFFF
    for byte in message:
        register = register >> 8 ^ BYTES[(register ^ byte) & 0xFF]
    return register ^ 0xFFFFFFFF


def closed(message):
    """Returns the message with its CRC."""
    return bytes(message) + crc32c(message).to_bytes(4, "little")
