package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/transport"
)

// TestHelp compares the help texts.
func TestHelp(t *testing.T) {
	for _, name := range []string{"", "reduce", "allreduce", "collective", "info", "top", "list", "config", "selftest", "bench", "reset", "serve", "sim", "trace", "decode", "pcap", "plan", "plan check", "plan simulate", "plan run"} {
		args := append(strings.Fields(name), "-h")
		s := tributary(context.Background(), args...)
		require.Equal(t, 0, s.status)
		require.Empty(t, s.errs)
		golden(t, filepath.Join("testdata", "help", name+".txt"), s.out)
	}
}

// TestHelpNamesEveryCard checks that the help names every scheme of a card's name.
func TestHelpNamesEveryCard(t *testing.T) {
	help := tributary(context.Background(), "-h").out
	for _, scheme := range transport.Schemes() {
		if scheme != "test" { // for tests only
			require.Regexp(t, `(?m)^  (.*, )?`+scheme+`:`, help)
		}
	}
}

// TestUnwritable checks that an unwritable path is refused before anything is summed, and that the
// error names its flag.
func TestUnwritable(t *testing.T) {
	workFolder(t)
	for _, line := range []string{
		"reduce -card unix:none -o /proc/FILE.npy w0.npy",
		"reduce -card unix:none -o sum.npy -record /proc/FILE.npy w0.npy",
	} {
		s := tributary(context.Background(), strings.Fields(line)...)
		require.Equal(t, 1, s.status)
		require.Regexp(t, `^tributary reduce: (-o|-record) /proc/FILE.npy: nothing can be written in /proc: [a-z ]+; name a place where you may write\n$`, s.errs)
	}
}

// TestErrors checks the messages and exit statuses of failing command lines, and that none of them
// leaves a file.
func TestErrors(t *testing.T) {
	manifest := cardManifest(t)
	damaged := strings.Replace(manifest, `"value": "0x4"`, `"v": ""`, 1) // of LANES
	for name, lines := range map[string][]string{
		"usage": {
			"what",
			"help frob",
			"help reduce frob",
			"reduce",
			"reduce -o sum.npy",
			"reduce -card model: -fast w0.npy",
			"reduce -o",
			"reduce -o sum.npy -op max w0.npy",
			"reduce -o sum.txt w0.npy",
			"reduce -o w0.npy w0.npy w1.npy",
			"reduce -o sum.npy a0.npz a1.npz",
			"reduce -o sum.npz w0.npy w1.npy",
			"reduce -o sum.npy -record w1.npy w0.npy w1.npy",
			"reduce -o sum.npy -record ./sum.npy w0.npy w1.npy",
			"reduce -o sum.npy -card cpu: -card cpu: -schedule= w0.npy",
			"reduce -o sum.npy -card cpu: -card cpu: -schedule 0,2 w0.npy",
			"reduce -o sum.npy -schedule 0,0 w0.npy",
			"reduce -o sum.npy -move w0.npy",
			"reduce -o sum.npy -card cpu: -card cpu: -stats w0.npy",
			"reduce -o sum.npy -card cpu: -card cpu: -carry-on 1s w0.npy",
			"reduce -o sum.npy -card cpu: -card cpu:sum=exact w0.npy",
			"reduce -o sum.npy -card cpu: -card cpu:workers=2 w0.npy w0.npy w0.npy",
			"reduce -o sum.npy -ports 0,2 w0.npy",
			"reduce -o sum.npy -ports 2,1 w0.npy w1.npy",
			"reduce -o sum.npy -ports 0,64 w0.npy w1.npy",
			"reduce -o sum.npy" + strings.Repeat(" w0.npy", 65),
			"reduce -o sum.npy -chunk -16 w0.npy",
			"reduce -o sum.npy -chunk x w0.npy",
			"reduce -o sum.npy -chunk 0 w0.npy",
			"reduce -o sum.npy -window 0 w0.npy",
			"reduce -o sum.npy -ports 0,x w0.npy w1.npy",
			"reduce -o sum.npy -timeout x w0.npy",
			"reduce -x w0.npy",
			"reduce -verify=maybe w0.npy",
			"reduce -o sum.npy -window 3 w0.npy",
			"reduce -o sum.npy -deadline -1s w0.npy",
			"reduce -o sum.npy -partial w0.npy",
			"reduce -o sum.npy -deadline 1s -partial -quantize w0.npy",
			"reduce -o sum.npy -deadline 1s -partial -verify w0.npy",
			"reduce -o sum.npy -timeout 0s w0.npy",
			"info -timeout -1s",
			"info extra",
			"top extra",
			"top -interval 0s",
			"top -interval often",
			"top -count 0",
			"top -record x.log",
			"config -workers -1",
			"config -workers 0",
			"config -workers 65",
			"config -workers 3 -ports 0,1",
			"bench extra",
			"bench -workers 0",
			"bench -workers 2,65",
			"bench -workers x",
			"bench -window 4,3",
			"bench -window 0",
			"bench -chunk 0",
			"bench -time 0s",
			"bench -elements 0",
			"sim",
			"sim one two",
			"sim . -usbip 3240",
			"sim . -serial A1",
			"sim . -bridge ft232h",
			"sim . -usbip :3240 -bridge ft602",
			"sim . -usbip :3240 -listen tcp::7000",
			"sim . -usbip :3240 -serial a#b",
			"sim . -pty card.tty -usbip :3240",
			"sim . -pty card.tty -listen tcp::7000",
			"sim . -baud 9600",
			"sim . -listen udp:127.0.0.1",
			"sim model: -once",
			"sim cpu:workers=4 -listen tcp:127.0.0.1:7000",
			"sim cpu: -listen udp:",
			"sim . -pty card.tty -baud 0",
			"sim model: -ip 10.0.0.1",
			"sim model: -port tcp:127.0.0.1:7000",
			"sim model: -port unix:",
			"sim model: -port unix:a -port unix:a",
			"sim model: -port unix:a -listen udp:127.0.0.1",
			"sim model: -port unix:a -mac 01:00:5e:00:00:01",
			"sim model: -port unix:a -ip ::1",
			"sim model: -port unix:a -ip 10.0.0.1:0",
			"sim model: -port unix:" + strings.Repeat("a", 200),
			"sim unbuilt -port unix:a -mac 02:00:00:00:00:01",
			"pcap",
			"pcap in.pcapng",
			"pcap w0.npy -o w0.npy",
			"pcap in.pcapng -o out.pcapng -card",
			"serve",
			"serve extra",
			"serve -card model: -card card0=model:",
			"serve -card a=serve:unix:s",
			"serve -card model: -listen tcp",
			"serve -card model: -listen unix:",
			"serve -card model: -listen tcp:127.0.0.1:0 -tls-cert cert.pem",
			"serve -card model: -listen tcp:127.0.0.1:0 -client-ca ca.pem",
			"serve -card model: -listen unix:s -tls-cert cert.pem -tls-key key.pem",
			"serve -card model: -metrics 9420",
			"serve -card model: -wait 0s",
			"serve -card model: -max-wait 59s",
			"serve -card model: -max-sessions 0",
			"serve -card model: -max-rate 1000001",
			"serve -card model: -grace -1s",
			"serve -card model: -timeout 0s",
			"trace",
			"trace unbuilt -format bf16",
			"trace unbuilt -window 3",
			"trace unbuilt -record w0.npy w0.npy w1.npy",
			"decode",
		},
		"input": {
			"reduce -o sum.npy missing.npy",
			"reduce -o sum.npy w0.npy flat.npy",
			"reduce -o sum.npy w0.npy double.npy",
			"reduce -o sum.npy nothing.npy",
			"reduce -o sum.npy cut.npy w0.npy",
			"reduce -o sum.npy w0.npy w1.npy flat.npy missing.npy text.npy none.npy cut.npy double.npy a0.npz nothing.npy .",
			"reduce -o sum.npz a0.npz a2.npz",
			"reduce -o nowhere/sum.npy w0.npy",
			"reduce -o folder.npy w0.npy",
			"reduce -o sum.npy -record nowhere/link.log w0.npy",
			"info -record folder.npy",
			"serve -card model: -token-file missing",
			"serve -card model: -listen tcp:127.0.0.1:0 -tls-cert w0.npy -tls-key w0.npy",
			"serve -card model: -listen unix:w0.npy",
			"serve -card model: -listen unix:nowhere/s",
			"pcap missing.pcapng -o out.pcapng",
			"pcap w0.npy -o out.pcapng",
			"sim model: -port unix:a -port unix:w0.npy",
			"sim model: -port unix:nowhere/port",
			"decode missing.log",
			"decode w0.npy",
		},
		"card": {
			"info -card usb7",

			"info -card unix:no.sock",
			"info -card serve:unix:no.sock",
			"info -card unix:",
			"info -card tcp:localhost",
			"info -card sim:",
			"info -card sim:.",
			"sim -listen udp:127.0.0.1:0 model:worker=4",
			"sim -listen udp:127.0.0.1:0 cpu:workers=65",
			"sim -listen udp:127.0.0.1:0 cpu:chunk=2064",
			"sim -listen udp:127.0.0.1:0 model:w.npy",
			"sim -listen udp:127.0.0.1:0 cpu:unbuilt",
			"sim -listen udp:0.0.0.0 model:",
			"sim -listen udp:127.0.0.1:70000 model:",
			"info -card sim:unbuilt",
			"info -card sim:bare",
			"info -card model:damaged",
			"info -card serial:",
			"info -card serial:card.tty@fast",
			"info -card serial:card.tty",
			"info -card serial:w0.npy",
			"serve -card unix:no.sock -listen unix:s",
			"serve -card model: -card sim:bare -listen unix:s",
			"sim .",
			"sim unbuilt",
			"sim unbuilt -port unix:a",
			"sim . -port unix:a",
			"sim model:worker=4 -port unix:a",
			"sim unbuilt -trace x.fst",
			"sim bare",
			"trace .",
			"trace unbuilt",
			"trace bare",
			"trace unbuilt -o nowhere/trace",
			"trace unbuilt -o w0.npy",
			"trace unbuilt -o .",
			"trace unbuilt w0.npy flat.npy",
			"reduce -o sum.npy -chunk 15 w0.npy w1.npy",
			"reduce -o sum.npy -chunk 2000 w0.npy w1.npy",
			"reduce -o sum.npy -window 64 w0.npy w1.npy",
			"reduce -o sum.npy -deadline 1m -partial w0.npy w1.npy",
			"reduce -o sum.npy -card model:unbuilt w0.npy w0.npy w0.npy w0.npy",
			"config -card model:unbuilt -ports 1,3",
			"bench -card unix:no.sock",
			"bench -card model:unbuilt -workers 2,4",
			"bench -card model:unbuilt -window 64",
			"bench -card model:unbuilt -chunk 15",
		},
	} {
		t.Run(name, func(t *testing.T) {
			goldenFile, err := filepath.Abs(filepath.Join("testdata", "errors", name+".txt"))
			require.NoError(t, err)
			workFolder(t)
			require.NoError(t, os.Mkdir("folder.npy", 0o777))
			bare := strings.Replace(manifest, `"shell": "stream"`, `"shell": "none"`, 1)
			for dir, text := range map[string]string{"unbuilt": manifest, "bare": bare, "damaged": damaged} {
				require.NoError(t, os.Mkdir(dir, 0o777))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(text), 0o666))
			}
			before := files(t)
			var all strings.Builder
			for _, line := range lines {
				args := strings.Fields(line)
				s := tributary(context.Background(), args...)
				require.NotEqual(t, 0, s.status, line)
				require.Empty(t, s.out, line)
				requireNoNewFiles(t, before)
				all.WriteString(transcript(args, s) + "\n")
			}
			golden(t, goldenFile, all.String())
		})
	}
}
