package wire

// What a host must know of a card behind a bridge: SPEC.md, section 10.
const (
	// BreakZeros are the zero bytes in a row that take the link down and up
	// again; SendZeros are those that a host sends.
	BreakZeros = 4096
	SendZeros  = 2 * BreakZeros
)

// FTDI's FT232H and FT2232H, in synchronous FIFO mode; the numbers are FTDI's.
const (
	FTDIVendor     uint16 = 0x0403
	FT2232HProduct uint16 = 0x6010 // also of older chips, which have another release
	FT232HProduct  uint16 = 0x6014

	// bcdDevice of the two chips.
	FT2232HRelease uint16 = 0x0700
	FT232HRelease  uint16 = 0x0900

	FTDIConfiguration       = 1
	FTDIInterface           = 0 // channel A
	FTDIOut           uint8 = 0x02
	FTDIIn            uint8 = 0x81
	FTDIStatus              = 2 // bytes at the head of each packet to the host

	// FTDIChannel is the wIndex that means channel A.
	FTDIChannel uint16 = 1
)

// Vendor requests of the chips: bmRequestType FTDISet or FTDIGet, and bRequest.
const (
	FTDISet uint8 = 0x40
	FTDIGet uint8 = 0xc0

	FTDIReset      uint8 = 0x00 // wValue: one of the three below
	FTDIFlow       uint8 = 0x02 // wIndex: FTDIFlowRTSCTS with the channel
	FTDISetLatency uint8 = 0x09 // wValue: milliseconds
	FTDIGetLatency uint8 = 0x0a
	FTDISetMode    uint8 = 0x0b // wValue: the mode in the upper byte, pins in the lower
	FTDIReadEEPROM uint8 = 0x90 // wIndex: the number of a word, which is the answer

	FTDIResetAll   uint16 = 0
	FTDIPurge1     uint16 = 1 // empties one of the chip's two buffers; sources
	FTDIPurge2     uint16 = 2 // differ on which, so a host empties both
	FTDIFlowRTSCTS uint16 = 0x0100

	FTDIModeReset    uint16 = 0x00ff // that of the EEPROM
	FTDIModeSyncFIFO uint16 = 0x40ff
)

// FTDITypeWord is the word of the EEPROM that says what channel A is, in the bits of
// FTDIType; a blank one has ones alone.
const (
	FTDITypeWord uint16 = 0
	FTDIType     uint16 = 0x0007
	FTDITypeFIFO uint16 = 0x0001
)

// FTDI's FT601 and FT600, in 245 mode with one channel: SPEC.md, section 10.4.
const (
	FT60xVendor         = FTDIVendor
	FT600Product uint16 = 0x601e
	FT601Product uint16 = 0x601f

	FT60xConfiguration       = 1
	FT60xControl             = 0 // interface with the first two endpoints
	FT60xData                = 1 // interface with the other two
	FT60xCommands      uint8 = 0x01
	FT60xNotices       uint8 = 0x81
	FT60xOut           uint8 = 0x02
	FT60xIn            uint8 = 0x82
	FT60xPacket              = 512 // bytes, at high speed
	FT60xNoticePacket        = 64
)

// Commands to an FT60x.
const (
	FT60xCommandBytes  = 20
	FT60xCommandPipe   = 4 // where the endpoint is that it is of
	FT60xCommandKind   = 5
	FT60xCommandLength = 8 // four bytes: a number of bytes

	FT60xAsk uint8 = 1 // for so many bytes
	FT60xEnd uint8 = 3 // what was asked for before
)

// The request for an FT60x's settings, and where they are in the answer.
const (
	FT60xGet           uint8  = 0xc0
	FT60xSettings      uint8  = 0xcf
	FT60xSettingsValue uint16 = 1
	FT60xSettingsBytes        = 152

	FT60xMode     = 138
	FT60xChannels = 139
	FT60xFeatures = 140 // two bytes

	FT60xMode245       uint8  = 0
	FT60xOneChannel    uint8  = 2
	FT60xFeatureNotice uint16 = 0x04 // notices of what channel 1 has for the host
)
