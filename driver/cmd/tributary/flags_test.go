package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBothStyles(t *testing.T) {
	for in, want := range map[string]string{
		"-card x --card x -o f --o f -h":   "--card x --card x -o f -o f -h",
		"-o=f --o=f -op=sum --op=sum":      "-o=f -o=f --op=sum --op=sum",
		"reduce -5 -1.5 - a-b ./-x":        "reduce -5 -1.5 - a-b ./-x",
		"-stats -- -stats --stats":         "--stats -- -stats --stats",
		"-listen unix:-x -listen=tcp:h:-1": "--listen unix:-x --listen=tcp:h:-1",
	} {
		require.Equal(t, want, strings.Join(bothStyles(strings.Fields(in)), " "))
	}
}

// TestSimStation checks that sim refuses addresses that no single card may have, as hwgen does.
func TestSimStation(t *testing.T) {
	workFolder(t)
	for _, flag := range []string{"-mac 00:00:00:00:00:00", "-mac ff:ff:ff:ff:ff:ff", "-ip 255.255.255.255", "-ip 224.0.0.1", "-ip 0.0.0.0"} {
		s := tributary(context.Background(), append([]string{"sim", "cpu:", "-port", "unix:p", "-once"}, strings.Fields(flag)...)...)
		require.Equal(t, 2, s.status, flag)
		require.Contains(t, s.errs, "tributary sim: "+flag+": it must be the ", flag)
	}
}

// TestSimListen checks that sim refuses an invalid listen address before it starts the card.
func TestSimListen(t *testing.T) {
	manifest := cardManifest(t)
	workFolder(t)
	require.NoError(t, os.MkdirAll("made/sim/build", 0o777))
	require.NoError(t, os.WriteFile("made/manifest.json", []byte(manifest), 0o666))
	require.NoError(t, os.WriteFile("made/sim/build/card", []byte("#!/bin/sh\ntouch started; exit 1\n"), 0o777))
	for _, address := range []string{"foo", "unix:", "tcp:", "tcp:80", "tcp:127.0.0.1:65536", "tcp:127.0.0.1:", "pigeon:1"} {
		s := tributary(context.Background(), "sim", "made", "-listen", address)
		require.Equal(t, 2, s.status, address)
		require.Equal(t, "tributary sim: -listen "+address+": it must be unix:PATH or tcp:HOST:PORT\nSee: tributary sim -h\n", s.errs)
	}
	require.NoFileExists(t, "started")
}
