package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective/membership"
	"tributary/driver/collective/membership/etcd"
	"tributary/driver/collective/membership/membershiptest"
	"tributary/driver/virtual/udp"
)

const patience = 2 * time.Minute

func start(t *testing.T, c etcd.ServerConfig) *etcd.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := etcd.Start(ctx, c)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func TestEtcd(t *testing.T) {
	membershiptest.Run(t, func(t *testing.T) membershiptest.Opener {
		name := start(t, etcd.ServerConfig{Dir: t.TempDir()}).Engine()
		return func(ctx context.Context) (membership.Engine, error) { return membership.Open(ctx, name) }
	})
}

// TestRestart: while etcd is away, calls wait and end with their context; a lease is kept through a short
// absence; afterwards the keys are there. A lease is lost when etcd stays away for its time.
func TestRestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := etcd.ServerConfig{Dir: t.TempDir(), Client: "http://" + udp.OwnLoopback() + ":0"} // nobody takes its port meanwhile
	s := start(t, c)
	e, err := membership.Open(ctx, s.Engine())
	require.NoError(t, err)
	defer e.Close()
	long, err := e.Grant(ctx, 10*time.Minute)
	require.NoError(t, err)
	short, err := e.Grant(ctx, time.Second) // a busy machine may lose it while etcd is there: it has no key
	require.NoError(t, err)
	_, err = e.Commit(ctx, membership.Txn{Put: []membership.Put{{Key: "long", Value: "1", Lease: long.ID()}}})
	require.NoError(t, err)
	before, err := e.Get(ctx, "long")
	require.NoError(t, err)
	s.Stop()
	soon, end := context.WithTimeout(ctx, 100*time.Millisecond)
	_, err = e.Get(soon, "")
	end()
	require.ErrorAs(t, err, new(*membership.UnavailableError))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-short.Lost()
	require.Equal(t, 1, etcd.Leases(e), "a lost lease is kept")
	came := make(chan error, 1)
	go func() {
		_, err := e.Get(ctx, "")
		came <- err
	}()
	c.Client = strings.TrimPrefix(s.Engine(), "etcd:")
	start(t, c)
	require.NoError(t, <-came)
	after, err := e.Get(ctx, "long")
	require.NoError(t, err)
	require.Equal(t, before.Keys, after.Keys)
	select {
	case <-long.Lost():
		t.Fatal("the long lease is lost")
	default:
	}
}

// authority is a CA that signs certificates into a folder.
type authority struct {
	*testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{T: t, dir: t.TempDir()}
	a.key, a.cert = a.make("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// make signs a certificate and writes NAME.pem and NAME.key.
func (a *authority) make(name string, c *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a, err)
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	require.NoError(a, err)
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(a, err)
	require.NoError(a, os.WriteFile(a.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(a, os.WriteFile(a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600))
	made, err := x509.ParseCertificate(der)
	require.NoError(a, err)
	return key, made
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// TestTLS: a client needs the right CA and a certificate.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	a.make("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: both})
	a.make("client", &x509.Certificate{ExtKeyUsage: both})
	s := start(t, etcd.ServerConfig{Dir: t.TempDir(), Client: "https://127.0.0.1:0", Certificate: a.file("server.pem"), Key: a.file("server.key"), ClientCA: a.file("ca.pem")})
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	own, err := tls.LoadX509KeyPair(a.file("client.pem"), a.file("client.key"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	try := func(patience time.Duration, c *tls.Config) error {
		e, err := membership.Open(ctx, s.Engine(), membership.WithTLS(c))
		require.NoError(t, err)
		defer e.Close()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err = e.Get(ctx, "")
		return err
	}
	require.NoError(t, try(patience, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}}))
	const brief = 300 * time.Millisecond
	require.Error(t, try(brief, &tls.Config{RootCAs: pool}), "without a certificate")
	require.Error(t, try(brief, &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{own}}), "of another CA")
}

func TestInput(t *testing.T) {
	dir := t.TempDir()
	for want, c := range map[string]etcd.ServerConfig{
		"Dir is empty":                    {},
		`Client is "localhost"`:           {Dir: dir, Client: "localhost"},
		"https needs Certificate and Key": {Dir: dir, Client: "https://127.0.0.1:0"},
		"and http has none":               {Dir: dir, Certificate: "c", Key: "k"},
		"ClientCA needs https":            {Dir: dir, ClientCA: "ca"},
		`Peer is "http://x"`:              {Dir: dir, Peer: "http://x"},
		"no such file":                    {Dir: dir, Client: "https://127.0.0.1:0", Certificate: dir + "/none", Key: dir + "/none"},
	} {
		_, err := etcd.Start(t.Context(), c)
		require.ErrorContains(t, err, want)
	}
	for name, want := range map[string]string{
		"etcd:":            `"" must be http://HOST:PORT`,
		"etcd:127.0.0.1:1": "must be http://HOST:PORT",
		"etcd:http://a:1":  "has no TLS, but certificates are given",
	} {
		_, err := membership.Open(t.Context(), name, membership.WithTLS(&tls.Config{}))
		require.ErrorContains(t, err, want)
	}
}
