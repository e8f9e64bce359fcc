// Package usb tests cards on USB (`make usb`): the unmodified tributary with libusb, against
// virtual cards that are USB devices. Package testbed replaces the kernel; folder kernel uses a
// real one.
package usb
