// Package guest boots Debian's kernel in QEMU for tests, without KVM, without root and without a
// disk. A guest's file system is in memory: busybox, some kernel modules, and the programs of a test
// with their shared libraries. setup.sh downloads the kernel.
//
// A test runs commands in a guest, one at a time, over its serial console.
package guest
