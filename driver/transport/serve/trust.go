package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// trust is how a client and a daemon know each other.
type trust struct {
	token []byte
	tls   *tls.Config // nil: no TLS
}

// readTrust reads what the environment names.
func readTrust(a address) (*trust, error) {
	t := &trust{}
	if path := os.Getenv("TRIBUTARY_TOKEN_FILE"); path != "" {
		token, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("TRIBUTARY_TOKEN_FILE: %w", err)
		}
		if t.token = bytes.TrimSpace(token); len(t.token) == 0 {
			return nil, fmt.Errorf("TRIBUTARY_TOKEN_FILE: %s is empty", path)
		}
	}
	ca, cert, key := os.Getenv("TRIBUTARY_TLS_CA"), os.Getenv("TRIBUTARY_TLS_CERT"), os.Getenv("TRIBUTARY_TLS_KEY")
	if a.isLocal() && ca == "" || a.network == "unix" {
		return t, nil
	}
	host, _, _ := net.SplitHostPort(a.place) // parse has checked it
	t.tls = &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("TRIBUTARY_TLS_CA: %w", err)
		}
		t.tls.RootCAs = x509.NewCertPool()
		if !t.tls.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("TRIBUTARY_TLS_CA: %s has no certificate in PEM", ca)
		}
	}
	if cert != "" || key != "" {
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("TRIBUTARY_TLS_CERT and TRIBUTARY_TLS_KEY: %w", err)
		}
		t.tls.Certificates = []tls.Certificate{own}
	}
	return t, nil
}

// secure opens a data connection, with TLS if the daemon has it.
func (t *trust) secure(ctx context.Context, dial func(ctx context.Context) (net.Conn, error)) (net.Conn, error) {
	conn, err := dial(ctx)
	if err != nil || t.tls == nil {
		return conn, err
	}
	secured := tls.Client(conn, t.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}
