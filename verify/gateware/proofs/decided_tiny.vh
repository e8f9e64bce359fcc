// The parameters of hwgen for three operands with 2 bits of fraction, in a window of 11 places.
parameter integer FRAC = 2,
parameter integer WIDTH = 15,
parameter integer GROWTH = 2,
parameter integer BITS = 32,
parameter integer KEEP = 9,
parameter integer PLACES = 5,
parameter integer NEAR = 4,
parameter integer FAR = 8,
parameter integer ONE = 9,
parameter integer OPERANDS = 3
