package main

import (
	"log/slog"
	"net"
	"os"
)

// notifyManager reports a state of this service, such as READY=1, to the program that started it:
// systemd, with Type=notify.
func notifyManager(log *slog.Logger, state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.Dial("unixgram", path) // @ begins an abstract name, for package net as well
	if err != nil {
		log.Warn("the service manager does not listen", "why", err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		log.Warn("the service manager does not listen", "why", err)
	}
}
