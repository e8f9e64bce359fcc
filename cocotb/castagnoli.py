"""CRC-32C as driver/wire/NETWORK.md defines it, a bit at a time."""

POLYNOMIAL = 0x1EDC6F41  # highest term first, without x^32


def crc32c(message):
    """Returns the CRC of the bytes as a number; a datagram has its low byte first.

    Reflected: the lowest bit of a byte comes first, and the highest term is the register's lowest bit.
    """
    reflected = int(f"{POLYNOMIAL:032b}"[::-1], 2)
    register = 0xFFFFFFFF
    for byte in message:
        for place in range(8):
            out = (register ^ byte >> place) & 1
            register = register >> 1 ^ (reflected if out else 0)
    return register ^ 0xFFFFFFFF


def closed(message):
    """Returns the message with its CRC."""
    return bytes(message) + crc32c(message).to_bytes(4, "little")
