//go:build usb

package main

import _ "tributary/driver/transport/usb" // registers usb:, ftdi: and ft60x:; needs libusb
