// Package usb tests cards on USB: the unmodified tributary, with libusb below it,
// against virtual cards that are USB devices (`make usb`). Package testbed stands in
// for the kernel; folder kernel has a real one.
package usb
