//go:build usb

package main

// Cards on USB, in a build with libusb.

import "tributary/driver/transport/usb"

// listUSB returns the cards on USB.
var listUSB = usb.List
