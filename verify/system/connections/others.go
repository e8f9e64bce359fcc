package connections

import "encoding/binary"

// Edit is a change of the frame of a data packet, without FCS.
type Edit struct {
	Name string
	Make func(f []byte) []byte
	Drop bool // the card drops the frame as roce_hidden; otherwise it passes
}

// in returns an edit of bytes.
func in(edit func(f []byte)) func(f []byte) []byte {
	return func(f []byte) []byte {
		edit(f)
		return f
	}
}

// Others make frames of no connection, with a wrong ICRC: they pass. The receiver's QPN is not 1 more or less
// than that of another one with its IPv4 address, and 77 ends no member's address.
var Others = []Edit{
	{"another QPN", other(func(f []byte) { f[atBTH+7] ^= 1 }), false},
	{"another QPN, its high", other(func(f []byte) { f[atBTH+5] ^= 0x80 }), false},
	{"another address", other(func(f []byte) { f[33] = 77 }), false},
	{"another UDP port", other(func(f []byte) { f[atToPort+1]++ }), false},
	{"UDP's source port", other(func(f []byte) { f[34], f[35], f[36] = f[36], f[37], 0 }), false},
	{"TCP", other(func(f []byte) { f[23] = 6 }), false},
	{"another EtherType", other(func(f []byte) { f[atEtherType] = 0x88 }), false},
}

// other returns an edit that also damages the payload.
func other(edit func(f []byte)) func(f []byte) []byte {
	return in(func(f []byte) {
		edit(f)
		f[120] ^= 1
	})
}

// Hidden make frames whose transport header is not where the card looks.
var Hidden = []Edit{
	{"VLAN", tagged(0x8100), true},
	{"service VLAN", tagged(0x88a8), true},
	{"VLAN with options", func(f []byte) []byte { return tagged(0x8100)(options(f)) }, true},
	{"options", options, true},
	{"options, another UDP port", set(atToPort+1, 0, options), true},
	{"options, TCP", set(23, 6, options), false},
	{"options, to nobody", set(33, 99, options), false},
	{"VLAN, TCP", set(23, 6, tagged(0x8100)), false},
	{"VLAN, to nobody", set(33, 99, tagged(0x8100)), false},
	{"VLAN, IPv6", set(atEtherType, 0x86, tagged(0x8100)), false},
}

// tagged returns an edit that inserts a VLAN tag.
func tagged(etherType uint16) func(f []byte) []byte {
	return func(f []byte) []byte {
		tag := binary.BigEndian.AppendUint16(nil, etherType)
		return append(append(append([]byte(nil), f[:atEtherType]...), append(tag, 0, 5)...), f[atEtherType:]...)
	}
}

// options inserts four bytes of IP options.
func options(f []byte) []byte {
	f = append(append(append([]byte(nil), f[:atUDP]...), 1, 1, 1, 1), f[atUDP:]...)
	f[atIP] = 0x46
	f[17] += 4
	return f
}

// set returns an edit that sets a byte before another edit.
func set(at int, value byte, then func(f []byte) []byte) func(f []byte) []byte {
	return func(f []byte) []byte {
		f[at] = value
		return then(f)
	}
}
