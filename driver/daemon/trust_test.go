package daemon_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/protocol/rpc"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// authority is a CA that signs the certificates of a test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // in PEM
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, a.file)
	return a
}

// sign writes a certificate, and returns it with its key. The first one signs itself.
func (a *authority) sign(template *x509.Certificate, file string) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(1), pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(file, "CERTIFICATE", der)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// pair writes a certificate for 127.0.0.1 and its key, and returns their files.
func (a *authority) pair() (cert, key string) {
	a.t.Helper()
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	_, secret := a.sign(&x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, cert)
	der, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(key, "PRIVATE KEY", der)
	return cert, key
}

// client returns the TLS configuration of a client, with a certificate if certified.
func (a *authority) client(certified bool) *tls.Config {
	a.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.cert)
	if certified {
		pair, err := tls.LoadX509KeyPair(a.pair())
		if err != nil {
			a.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// attachTLS opens a session over TLS: gRPC with its own credentials, and the data connection.
func attachTLS(t testing.TB, address string, config *tls.Config, hello *protocol.Hello) *client {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &client{TB: t, scan: frame.NewScanner(frame.FromCard, 0)}
	if c.stream, err = rpc.NewTributaryClient(conn).Attach(testContext(t)); err != nil {
		t.Fatal(err)
	}
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Hello{Hello: hello}})
	welcome := c.receive().GetWelcome()
	if welcome == nil {
		t.Fatal("not welcome")
	}
	if c.conn, err = tls.Dial("tcp", address, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close() })
	c.frames = c.conn
	c.write(append([]byte("TRIBDAT1"), welcome.Key...))
	return c
}

// sum sums a chunk of two sessions and compares it.
func sum(t testing.TB, one, two *client, b *protocol.Begin, vid uint32) {
	t.Helper()
	for rank, c := range []*client{one, two} {
		c.write(data(b, uint8(rank), vid, float32(rank+1)))
	}
	for rank, c := range []*client{one, two} {
		f := c.read()
		if x := math.Float32frombits(binary.LittleEndian.Uint32(f.Payload)); f.VID != vid || f.Mask != 3 || x != 3 {
			t.Fatalf("rank %d gets %+v, %g; want 3 in chunk %d", rank, f.Header, x, vid)
		}
	}
}

// announce announces a call of two sessions.
func announce(one, two *client, b *protocol.Begin, chunks uint64) {
	for rank, c := range []*client{one, two} {
		c.call(&protocol.Call{Nonce: b.Nonce, Rank: uint32(rank), Elements: 16 * chunks, Format: uint32(wire.FP32)})
	}
}

// TestTLS sums over TLS with a token: both kinds of connections share the port.
func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.pair()
	config, err := daemon.LoadTLS(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	address := serveTCP(t, daemon.Options{TLS: config, Token: []byte("secret")})
	hello := func() *protocol.Hello { return &protocol.Hello{Version: 1, Token: []byte("secret")} }
	one, two := attachTLS(t, address, ca.client(false), hello()), attachTLS(t, address, ca.client(false), hello())
	nonce := one.create(&protocol.Parameters{Workers: pointer(uint32(2))})
	one.join(nonce, 0, nil)
	two.join(nonce, 1, nil)
	two.begun()
	b := one.begun()
	announce(one, two, b, 100)
	for vid := range uint32(100) {
		sum(t, one, two, b, vid)
	}
}

// TestClientCertificates refuses a client without a certificate of the CA.
func TestClientCertificates(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.pair()
	config, err := daemon.LoadTLS(cert, key, ca.file)
	if err != nil {
		t.Fatal(err)
	}
	address := serveTCP(t, daemon.Options{TLS: config})
	attachTLS(t, address, ca.client(true), &protocol.Hello{Version: 1})
	stranger := newAuthority(t).client(true)
	stranger.RootCAs = ca.client(false).RootCAs
	for name, config := range map[string]*tls.Config{"none": ca.client(false), "a stranger's": stranger} {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := rpc.NewTributaryClient(conn).Attach(testContext(t))
		if err == nil {
			_, err = stream.Recv()
		}
		if err == nil {
			t.Errorf("a client with the certificate %s gets in", name)
		}
		conn.Close()
	}
}

// TestOldTLS refuses TLS 1.2, and ports without TLS.
func TestOldTLS(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.pair()
	config, err := daemon.LoadTLS(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	address := serveTCP(t, daemon.Options{TLS: config})
	old := ca.client(false)
	old.MaxVersion = tls.VersionTLS12
	if conn, err := tls.Dial("tcp", address, old); err == nil {
		conn.Close()
		t.Error("the daemon takes TLS 1.2")
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("TRIBDAT1")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, err := conn.Read(make([]byte, 64)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a connection without TLS stays open")
		} else if err != nil {
			break
		}
	}
}

// TestWrongToken refuses a session, and neither answer nor log has the token.
func TestWrongToken(t *testing.T) {
	var log lockedBuffer
	path := serve(t, daemon.Options{Token: []byte("correct"), Log: log.logger()})
	for _, token := range []string{"", "wrong", "correct\n", "correc"} {
		r := refusedHello(t, path, &protocol.Hello{Version: 1, Token: []byte(token)})
		if r.GetReason() != protocol.Reason_TOKEN || strings.Contains(r.Text, "correct") {
			t.Errorf("token %q: got %v", token, r)
		}
	}
	attach(t, path, &protocol.Hello{Version: 1, Token: []byte("correct")})
	if strings.Contains(log.String(), "correct") {
		t.Error("the token is in the log")
	}
}

// TestTrust lists where a daemon may listen.
func TestTrust(t *testing.T) {
	plain, certified := &tls.Config{}, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}
	token := []byte("token")
	local, any := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	for _, x := range []struct {
		at    net.Addr
		o     daemon.Options
		lacks string
	}{
		{&net.UnixAddr{Net: "unix", Name: "s"}, daemon.Options{}, ""},
		{local, daemon.Options{}, ""},
		{&net.TCPAddr{IP: net.IPv6loopback}, daemon.Options{}, ""},
		{any, daemon.Options{}, "give a certificate and its key, and a token or the CA of client certificates, or"},
		{any, daemon.Options{Token: token}, "give a certificate and its key, or"},
		{any, daemon.Options{TLS: plain}, "give a token or the CA of client certificates, or"},
		{&net.TCPAddr{}, daemon.Options{TLS: plain}, "give a token or the CA of client certificates, or"},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, daemon.Options{}, "give a certificate"},
		{any, daemon.Options{TLS: plain, Token: token}, ""},
		{any, daemon.Options{TLS: certified}, ""},
	} {
		err := daemon.CheckTrust(x.at, x.o)
		if (err == nil) != (x.lacks == "") || err != nil && !strings.Contains(err.Error(), x.lacks) {
			t.Errorf("%s: got %v, want %q", x.at, err, x.lacks)
		}
	}
}

// TestServeChecksTrust: a program cannot forget the check.
func TestServeChecksTrust(t *testing.T) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	card := openModel(t)
	err = newServer(card, daemon.Options{}).Serve(context.Background(), listener, 0)
	var trust *daemon.TrustError
	if !errors.As(err, &trust) || card.Err() == nil {
		t.Errorf("got %v, and card %v", err, card.Err())
	}
}

// TestReadToken checks the modes and contents of token files.
func TestReadToken(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		mode        os.FileMode
		text, token string
		why         string
	}{
		{0o600, "secret\n", "secret", ""},
		{0o400, "secret\r\n", "secret", ""},
		{0o600, " two words", " two words", ""},
		{0o640, "secret", "", "others may read"},
		{0o604, "secret", "", "others may read"},
		{0o600, "\n", "", "has no token"},
		{0o600, strings.Repeat("x", 5000), "", "at most 4096"},
	} {
		path := filepath.Join(dir, "token")
		os.Remove(path)
		if err := errors.Join(os.WriteFile(path, []byte(x.text), 0o600), os.Chmod(path, x.mode)); err != nil {
			t.Fatal(err)
		}
		token, err := daemon.ReadToken(path)
		if string(token) != x.token || (err == nil) != (x.why == "") || err != nil && !strings.Contains(err.Error(), x.why) {
			t.Errorf("%q of mode %o: got %q, %v", x.text, x.mode, token, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the token: %v", err)
		}
	}
	credential := filepath.Join(dir, "credential") // systemd lets the group read it, and guards the folder
	if err := errors.Join(os.WriteFile(credential, []byte("secret"), 0o600), os.Chmod(credential, 0o440)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	if token, err := daemon.ReadToken(credential); string(token) != "secret" {
		t.Errorf("a credential: %v", err)
	}
}
