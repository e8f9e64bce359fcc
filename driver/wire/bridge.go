package wire

// Constants of a card behind a bridge: SPEC.md, section 10.
const (
	// BreakZeros is the number of consecutive zero bytes that takes the link down
	// and up again. SendZeros is the number that a host sends.
	BreakZeros = 4096
	SendZeros  = 2 * BreakZeros
)

// FTDI's FT232H and FT2232H in synchronous FIFO mode; FTDI assigns the numbers.
const (
	FTDIVendor     uint16 = 0x0403
	FT2232HProduct uint16 = 0x6010 // older chips share it, with another release
	FT232HProduct  uint16 = 0x6014

	// bcdDevice of each chip.
	FT2232HRelease uint16 = 0x0700
	FT232HRelease  uint16 = 0x0900

	FTDIConfiguration       = 1
	FTDIInterface           = 0 // channel A
	FTDIOut           uint8 = 0x02
	FTDIIn            uint8 = 0x81
	FTDIStatus              = 2 // bytes at the head of each packet to the host

	// FTDIChannel is the wIndex of channel A.
	FTDIChannel uint16 = 1
)

// Vendor requests of the chips: bmRequestType FTDISet or FTDIGet, and bRequest.
const (
	FTDISet uint8 = 0x40
	FTDIGet uint8 = 0xc0

	FTDIReset      uint8 = 0x00 // wValue: FTDIResetAll, FTDIPurge1 or FTDIPurge2
	FTDIFlow       uint8 = 0x02 // wIndex: FTDIFlowRTSCTS with the channel
	FTDISetLatency uint8 = 0x09 // wValue: milliseconds
	FTDIGetLatency uint8 = 0x0a
	FTDISetMode    uint8 = 0x0b // wValue: mode in the upper byte, pins in the lower
	FTDIReadEEPROM uint8 = 0x90 // wIndex: index of the word to return

	FTDIResetAll   uint16 = 0
	FTDIPurge1     uint16 = 1 // empties one of the chip's two buffers; sources
	FTDIPurge2     uint16 = 2 // disagree on which one, so a host empties both
	FTDIFlowRTSCTS uint16 = 0x0100

	FTDIModeReset    uint16 = 0x00ff // the EEPROM's mode
	FTDIModeSyncFIFO uint16 = 0x40ff
)

// FTDITypeWord is the word of the EEPROM with channel A's type in the bits of
// FTDIType. A blank EEPROM reads as all ones.
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
	FT60xControl             = 0 // interface of FT60xCommands and FT60xNotices
	FT60xData                = 1 // interface of FT60xOut and FT60xIn
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
	FT60xCommandPipe   = 4 // offset of the endpoint's address
	FT60xCommandKind   = 5 // offset of the kind
	FT60xCommandLength = 8 // offset of the number of bytes, 4 bytes

	FT60xAsk uint8 = 1 // requests a number of bytes
	FT60xEnd uint8 = 3 // cancels earlier requests
)

// The request for an FT60x's settings, and the offsets of the settings in the answer.
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
	FT60xFeatureNotice uint16 = 0x04 // notices of data that channel 1 has for the host
)
