package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// TrustError is the error of an address that other machines can reach, without what SPEC.md,
// section 10, demands there.
type TrustError struct {
	Address string
	TLS     bool // a certificate and its key are missing
	Clients bool // a token or the CA of client certificates is missing
}

func (e *TrustError) Error() string {
	return e.Text("a certificate and its key", "a token or the CA of client certificates")
}

// Text is Error with other names for what is missing.
func (e *TrustError) Text(tls, clients string) string {
	var lacks []string
	if e.TLS {
		lacks = append(lacks, tls)
	}
	if e.Clients {
		lacks = append(lacks, clients)
	}
	return fmt.Sprintf("other machines can reach %s; give %s, or listen at a Unix socket or 127.0.0.1", e.Address, strings.Join(lacks, ", and "))
}

// CheckTrust returns a TrustError if a server with these options must not listen at an address.
func CheckTrust(at net.Addr, o Options) error {
	e := &TrustError{
		Address: at.String(),
		TLS:     o.TLS == nil,
		Clients: len(o.Token) == 0 && (o.TLS == nil || o.TLS.ClientAuth != tls.RequireAndVerifyClientCert),
	}
	if reachable(at) && (e.TLS || e.Clients) {
		return e
	}
	return nil
}

// reachable reports whether other machines can reach an address.
func reachable(at net.Addr) bool {
	if at.Network() == "unix" {
		return false
	}
	tcp, ok := at.(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}

// LoadTLS returns the configuration for a certificate and its key, in PEM. If clientCA is not empty,
// clients need a certificate of one of the CAs in that file.
func LoadTLS(certFile, keyFile, clientCA string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if clientCA == "" {
		return config, nil
	}
	text, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, err
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", clientCA)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}

// secured returns a listener for TLS 1.3 with a configuration. Control connections negotiate h2, as
// gRPC demands. Data connections may negotiate it too, or nothing: their first bytes tell them apart.
func secured(listener net.Listener, config *tls.Config) net.Listener {
	config = config.Clone()
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = []string{"h2"}
	return tls.NewListener(listener, config)
}

// The longest token, and thus the longest file.
const tokenBytes = 4096

// ReadToken reads the token in a file, without the newline at its end. It refuses a file that others
// than its owner may read. A credential of systemd is an exception: the group of its file may read it,
// and its folder keeps others out.
func ReadToken(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	open := info.Mode().Perm() & 0o077
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" && filepath.Dir(path) == filepath.Clean(dir) {
		open &^= 0o070
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case open != 0:
		return nil, fmt.Errorf("others may read %s, whose mode is %04o; set it to 0600", path, info.Mode().Perm())
	case info.Size() > tokenBytes:
		return nil, fmt.Errorf("%s has %d bytes; a token has at most %d", path, info.Size(), tokenBytes)
	}
	text, err := io.ReadAll(io.LimitReader(f, tokenBytes))
	if err != nil {
		return nil, err
	}
	token := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if len(token) == 0 {
		return nil, fmt.Errorf("%s has no token", path)
	}
	return token, nil
}
