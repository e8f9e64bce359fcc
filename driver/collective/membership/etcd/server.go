package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// ServerConfig describes an etcd in this process.
type ServerConfig struct {
	Dir    string // of its data; it continues from what is there
	Client string // URL that it serves at; default http://127.0.0.1:0, a free port

	// For https: files of the certificate and its key, and of the CA of clients. With a CA, clients need
	// a certificate.
	Certificate, Key, ClientCA string

	// Of an etcd with several servers: this one's name, the URL for the others, and NAME=URL of all,
	// separated by commas. By default, it is alone.
	Name, Peer, Cluster string
}

// Server is an etcd in this process.
type Server struct {
	etcd *embed.Etcd
	url  string
	once sync.Once
}

// Start starts an etcd and waits until it serves. An error says what of the configuration is wrong, or wraps
// ctx's.
func Start(ctx context.Context, c ServerConfig) (*Server, error) {
	cfg, err := c.embedded()
	if err != nil {
		return nil, fmt.Errorf("embedded etcd: %w", err)
	}
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("embedded etcd in %s: %w", c.Dir, err)
	}
	s := &Server{etcd: etcd}
	select {
	case <-etcd.Server.ReadyNotify():
		s.url = fmt.Sprintf("%s://%s", cfg.ListenClientUrls[0].Scheme, etcd.Clients[0].Addr())
		return s, nil
	case err = <-etcd.Err():
	case <-etcd.Server.StopNotify():
		err = fmt.Errorf("it has stopped")
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.Stop()
	return nil, fmt.Errorf("embedded etcd in %s does not start: %w", c.Dir, err)
}

// embedded returns etcd's configuration.
func (c ServerConfig) embedded() (*embed.Config, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("field Dir is empty; name the folder for its data")
	}
	cfg := embed.NewConfig()
	cfg.Dir = c.Dir
	cfg.LogLevel = "fatal" // errors come as errors
	client, err := serverURL("Client", c.Client)
	if err != nil {
		return nil, err
	}
	peer, err := serverURL("Peer", c.Peer)
	if err != nil {
		return nil, err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	if c.Name != "" {
		cfg.Name = c.Name
	}
	cfg.InitialCluster = c.Cluster
	if c.Cluster == "" {
		cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	}
	secure := c.Certificate != "" || c.Key != ""
	switch {
	case secure != (client.Scheme == "https"):
		return nil, fmt.Errorf("field Client is %s: https needs Certificate and Key, and http has none", client)
	case c.ClientCA != "" && !secure:
		return nil, fmt.Errorf("field ClientCA needs https; set Client, Certificate and Key")
	}
	if secure {
		if _, err := tls.LoadX509KeyPair(c.Certificate, c.Key); err != nil {
			return nil, fmt.Errorf("files of Certificate and Key: %w", err)
		}
		cfg.ClientTLSInfo = transport.TLSInfo{CertFile: c.Certificate, KeyFile: c.Key, TrustedCAFile: c.ClientCA, ClientCertAuth: c.ClientCA != ""}
	}
	return cfg, nil
}

// serverURL returns the URL of a field.
func serverURL(field, text string) (*url.URL, error) {
	if text == "" {
		text = "http://127.0.0.1:0"
	}
	u, err := url.Parse(text)
	if err != nil || !strings.HasPrefix(u.Scheme, "http") || u.Port() == "" {
		return nil, fmt.Errorf("%s is %q; it must be http://HOST:PORT or https://HOST:PORT", field, text)
	}
	return u, nil
}

// Engine returns the name of the engine for members: etcd:URL.
func (s *Server) Engine() string { return "etcd:" + s.url }

// Stop stops the server. Its data stay in its folder. A second Stop does nothing.
func (s *Server) Stop() { s.once.Do(s.etcd.Close) }
