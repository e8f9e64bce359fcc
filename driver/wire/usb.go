package wire

// A card's identity on USB: SPEC.md, section 9.
const (
	// USBVendor and USBProduct are pid.codes' vendor number and its first
	// product number for tests. Other devices use them too, so a host recognizes
	// a card by its answer to USBIdentify.
	USBVendor  uint16 = 0x1209
	USBProduct uint16 = 0x0001

	USBManufacturer  = "Tributary"
	USBProductPrefix = "Tributary card " // followed by the configuration hash, 16 hex digits

	USBConfiguration = 1
	USBInterface     = 0
	USBLinkDown      = 0 // alternate setting without endpoints
	USBLinkUp        = 1 // alternate setting with the byte stream

	USBOut    uint8 = 0x01 // endpoint, host to card
	USBIn     uint8 = 0x81 // endpoint, card to host
	USBPacket       = 512  // bytes in a packet of a high-speed bulk endpoint

	// USBIdentify reads the identification block: a vendor request to the device
	// with bmRequestType USBIdentifyType, wValue 0 and wIndex 0.
	USBIdentifyType uint8 = 0xc0
	USBIdentify     uint8 = 0x01
)

// USBIdentBytes is the length of the answer to USBIdentify: the registers from MAGIC
// to LATENCY by address, 8 bytes each, lowest byte first.
const USBIdentBytes = int(RegLatency) + 8
