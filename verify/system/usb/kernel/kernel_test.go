// Package kernel tests cards on USB against Linux's own USB stack, in QEMU (`make
// test-usb-kernel`). It attaches virtual cards over USB/IP, and runs the tributary of this
// machine. It repeats the core of the tests that package usb runs under umockdev.
package kernel

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/verify/system/usb/rig"
)

var record = flag.Bool("record", false, "write RESULT.md")

const (
	workers = 4
	long    = 40_000
	middle  = 300_000 // bytes to the card, in the middle of its data
)

// bench is the guest with a card, and echo devices.
type bench struct {
	*machine
	card *rig.Card
}

// step is one test; it returns a text for RESULT.md.
type step struct {
	name string
	try  func(t *testing.T, b *bench) string
}

const reduce = "tributary reduce -verify -card usb:1209:0001#A1 -o sum.npy w0.npy w1.npy w2.npy w3.npy"

var steps = []step{
	{"all three devices are found, one of them attached with `usbip attach`", func(t *testing.T, b *bench) string {
		require.Eventually(t, func() bool { return strings.Count(b.run("tributary list").Out, "usb:1209:0001#") == 3 }, patience, time.Second)
		return ""
	}},
	{"bytes both ways, in bursts of 1,024 bytes that packets of no bytes end", func(t *testing.T, b *bench) string {
		r := b.run("loop -card usb:1209:0001#ECHO -bytes 10000000")
		require.Zero(t, r.Status, r.Out)
		return strings.TrimSpace(r.Out)
	}},
	{"bytes both ways, in longer bursts", func(t *testing.T, b *bench) string {
		r := b.run("loop -card usb:1209:0001#LONG -bytes 50000000")
		require.Zero(t, r.Status, r.Out)
		return strings.TrimSpace(r.Out)
	}},
	{"bytes both ways, in writes of all sizes", func(t *testing.T, b *bench) string {
		r := b.run("loop -card usb:1209:0001#ECHO -bytes 2000000 -write 2047")
		require.Zero(t, r.Status, r.Out)
		return strings.TrimSpace(r.Out)
	}},
	{"a reduction, every bit", works},
	{"stall of the IN endpoint", fails("it halted an endpoint", func(b *bench) { b.card.Halt(wire.USBIn) })},
	{"stall of the OUT endpoint", fails("it halted an endpoint", func(b *bench) { b.card.Halt(wire.USBOut) })},
	{"unplugged", fails("disconnected:", func(b *bench) { b.card.Unplug() })},
	{"stall, carrying on", carriesOn(func(b *bench) { b.card.Halt(wire.USBIn) })},
	{"unplugged and plugged in again, carrying on", carriesOn(func(b *bench) { b.card.Unplug() })},
	{"a card that stops answering", func(t *testing.T, b *bench) string {
		b.card.After(middle, b.card.Stop)
		r := b.run(reduce + " -timeout 2s")
		b.card.Continue()
		require.Equal(t, 4, r.Status, r.Out)
		return works(t, b)
	}},
	{"Ctrl-C", func(t *testing.T, b *bench) string {
		r := b.run("timeout -s INT 1 " + reduce)
		require.Equal(t, 1, r.Status, r.Out)
		require.Contains(t, r.Out, "stopped")
		return works(t, b)
	}},
	{"killed", func(t *testing.T, b *bench) string {
		r := b.run("timeout -s KILL 1 " + reduce)
		require.Greater(t, r.Status, 128, r.Out)
		return works(t, b)
	}},
	{"claimed by another program", func(t *testing.T, b *bench) string {
		b.run("tributary bench -time 10s -card usb:1209:0001#A1 >/dev/null 2>&1 & sleep 2")
		r := b.run("tributary reset -card usb:1209:0001#A1; s=$?; kill -INT $!; wait $!; (exit $s)")
		require.Equal(t, 1, r.Status, r.Out)
		require.Contains(t, r.Out, "another program has claimed usb:1209:0001#A1")
		return works(t, b)
	}},
	{"self-test", func(t *testing.T, b *bench) string {
		r := b.run("tributary selftest -card usb:1209:0001#A1")
		require.Zero(t, r.Status, r.Out)
		return ""
	}},
}

// works checks that the card sums.
func works(t *testing.T, b *bench) string {
	r := b.run(reduce)
	require.Zero(t, r.Status, r.Out)
	require.Contains(t, r.Out, "every bit of the sum as in the Go model")
	return ""
}

// fails is a reduction that do makes fail with an error of these words. Afterwards the card
// works.
func fails(words string, do func(*bench)) func(*testing.T, *bench) string {
	return func(t *testing.T, b *bench) string {
		b.card.After(middle, func() { do(b) })
		r := b.run(reduce)
		require.Equal(t, 1, r.Status, r.Out)
		require.Contains(t, r.Out, words)
		require.Eventually(t, func() bool { return strings.Contains(b.run("tributary list").Out, "#A1") }, patience, 100*time.Millisecond)
		works(t, b)
		return strings.TrimSpace(r.Out)
	}
}

// carriesOn is a reduction that succeeds although do disturbs it twice.
func carriesOn(do func(*bench)) func(*testing.T, *bench) string {
	return func(t *testing.T, b *bench) string {
		b.card.After(middle/2, func() {
			do(b)
			b.card.After(middle/2, func() { do(b) })
		})
		r := b.run(reduce + " -carry-on 60s -stats")
		require.Zero(t, r.Status, r.Out)
		require.Contains(t, r.Out, "every bit of the sum as in the Go model")
		require.Contains(t, strings.Join(strings.Fields(r.Out), " "), "outages 2")
		return ""
	}
}

func TestKernel(t *testing.T) {
	began := time.Now()
	g := boot(t, rig.Arrays(t, t.TempDir(), workers, long))
	booted := time.Since(began)
	b := &bench{g, rig.NewCard(t, folder, "A1")}
	g.plug(b.card, 0)
	g.plug(rig.NewFake(t, "ECHO", rig.Echo(1024)), 1)
	g.attach(rig.NewFake(t, "LONG", rig.Echo(256<<10)))
	var rows strings.Builder
	for _, s := range steps {
		start := time.Now()
		said := s.try(t, b)
		took := time.Since(start)
		t.Logf("%s: %.1f s %s", s.name, took.Seconds(), said)
		fmt.Fprintf(&rows, "| %s | %.1f s | %s |\n", s.name, took.Seconds(), strings.ReplaceAll(said, "\n", " "))
	}
	if *record {
		writeResult(t, g.Version, booted, rows.String())
	}
}

// writeResult writes RESULT.md.
func writeResult(t *testing.T, version string, booted time.Duration, rows string) {
	t.Helper()
	qemu, err := exec.Command("qemu-system-x86_64", "--version").Output()
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(qemu), "\n")
	text := fmt.Sprintf(`# Cards on USB against Linux's USB stack

`+"`make test-usb-kernel`"+` wrote this page, with Debian's kernel %s
in %s,
without KVM; ready after %.0f s. The kernel attaches the cards by vhci-hcd and USB/IP.

Every row passed:

| test | time | message |
|---|---|---|
%s`, version, first, booted.Seconds(), rows)
	require.NoError(t, os.WriteFile("RESULT.md", []byte(text), 0o644))
}
