package main

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"tributary/driver"
	"tributary/driver/daemon"
)

// server is a card that this process shares.
type server struct {
	name string             // of the card, for clients
	stop context.CancelFunc // refuses new jobs
	cut  context.CancelFunc // ends running jobs
	over chan struct{}      // closed when err is set
	err  error
}

//export goServe
func goServe(to *C.struct_failure, name *C.char, o *C.tributary_open_options, address *C.char, made *C.uintptr_t) C.int {
	return report(to, func() error {
		opts, err := openOptions(o)
		if err != nil {
			return err
		}
		if err := daemon.CheckCard(C.GoString(name)); err != nil {
			return &driver.InputError{What: "name", Why: err.Error()}
		}
		listener, client, err := listen(C.GoString(address))
		if err != nil {
			return &driver.InputError{What: "address", Why: err.Error()}
		}
		card, err := driver.Open(background, C.GoString(name), append(opts, driver.WithWorkers(int(o.workers)), driver.WithReopen(func(*driver.DiedError) {}))...)
		if err != nil {
			listener.Close()
			return err
		}
		publish(share(card, listener, client), made)
		return nil
	})
}

// listen listens at an address that no other machine can reach. client is the card's name for clients.
func listen(address string) (listener net.Listener, client string, err error) {
	if listener, err = daemon.Listen(background, address); err != nil {
		return nil, "", err
	}
	if daemon.CheckTrust(listener.Addr(), daemon.Options{}) != nil {
		listener.Close()
		return nil, "", fmt.Errorf("other machines can reach %s; serve at unix:PATH or tcp:127.0.0.1:PORT, or start `tributary serve` with TLS", address)
	}
	closeInChildren(listener, false)
	local, ok := listener.(*net.UnixListener)
	if !ok {
		return listener, "serve:" + listener.Addr().String(), nil
	}
	path := strings.TrimPrefix(address, "unix:")
	s := &socket{UnixListener: local}
	if s.path, err = filepath.Abs(path); err != nil {
		listener.Close()
		return nil, "", err
	}
	s.SetUnlinkOnClose(false)
	return s, "serve:unix:" + path, nil
}

// socket is a listener at a Unix socket. At the end it removes the socket's file, also if the program has
// changed its working folder.
type socket struct {
	*net.UnixListener
	path string
}

// Close removes the file first: later it may be that of another daemon.
func (s *socket) Close() error {
	return errors.Join(os.Remove(s.path), s.UnixListener.Close())
}

// share shares a card until close.
func share(card *driver.Card, listener net.Listener, client string) *server {
	s := &server{name: client, over: make(chan struct{})}
	var until, finish context.Context
	until, s.stop = context.WithCancel(background)
	finish, s.cut = context.WithCancel(background)
	shared := daemon.New(map[string]daemon.Card{"card0": card}, daemon.Options{})
	go func() {
		defer close(s.over)
		s.err = shared.ServeUntil(until, finish, listener)
	}()
	return s
}

//export goServerName
func goServerName(to *C.struct_failure, handle C.uint64_t, buffer *C.char, capacity C.size_t, length *C.size_t) C.int {
	return with(to, handle, func(s *server) error {
		return giveText("name", s.name, buffer, capacity, length)
	})
}

// giveText writes a text with a final 0 into a buffer of the caller, and its length with the final 0 into
// *length, unless length is nil.
func giveText(what, text string, buffer *C.char, capacity C.size_t, length *C.size_t) error {
	ended := append([]byte(text), 0)
	if length != nil {
		*length = C.size_t(len(ended))
	}
	if uint64(capacity) < uint64(len(ended)) {
		return &driver.InputError{What: "buffer of the " + what, Why: fmt.Sprintf("it has %d bytes, and the %s %d", capacity, what, len(ended))}
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(buffer)), len(ended)), ended)
	return nil
}

//export goServerClose
func goServerClose(to *C.struct_failure, handle C.uint64_t, grace C.int64_t) C.int {
	return with(to, handle, func(s *server) error {
		if grace < 0 {
			return &driver.InputError{What: "grace", Why: fmt.Sprintf("%d ns is negative", grace)}
		}
		defer forget(handle)
		return s.close(time.Duration(grace))
	})
}

// close stops the server. Running jobs may finish for at most grace, or for less if another call says so.
func (s *server) close(grace time.Duration) error {
	if grace == 0 {
		s.cut()
	}
	s.stop()
	late := time.AfterFunc(grace, s.cut)
	defer late.Stop()
	<-s.over
	s.cut()
	return s.err
}
