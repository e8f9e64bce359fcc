package driver

// The scheme model: a card that is the Go model, inside this program. This is
// the one file of the driver that knows the model; without it the driver works
// with real and virtual cards all the same.

import (
	"context"

	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
	"tributary/verify/model"
)

// modelPipeBytes is what the pipe to a model card holds in either direction.
const modelPipeBytes = 256 << 10

// The card "model:" when no folder describes it: 16 fp32 lanes, as many ports
// as there are workers, else 4, the largest chunk that a frame can carry, and
// hwgen's other defaults. It takes no time, so its latency is 0.
const (
	modelLanes  = 16
	modelPorts  = 4
	modelChunk  = 1008
	modelWindow = 8
	modelLink   = 32
)

func init() { transport.Register("model", openModel) }

func openModel(_ context.Context, r transport.Request) (transport.Conn, error) {
	if r.Address != "" {
		manifest, err := transport.ReadManifest(r.Address)
		if err != nil {
			return nil, err
		}
		if err := manifest.CheckLink(); err != nil {
			return nil, err
		}
		conn, err := serveModel(modelConfig(manifest))
		if err != nil {
			return nil, err
		}
		return &folderModel{conn, manifest}, nil
	}
	cfg := model.Config{
		Lanes:  modelLanes,
		Ports:  modelPorts,
		Chunk:  modelChunk,
		Window: modelWindow,
		Shell:  wire.ShellStream,
		Link:   modelLink,
	}
	if r.Workers > 0 {
		cfg.Ports = r.Workers
	}
	return serveModel(cfg)
}

// modelConfig returns the card that a manifest describes.
func modelConfig(m *transport.Manifest) model.Config {
	at := m.Constants
	return model.Config{
		Lanes:   int(at["LANES"]),
		Ports:   int(at["PORTS"]),
		Chunk:   int(at["CHUNK"]),
		Window:  int(at["WINDOW"]),
		Format:  wire.Format(at["FORMAT"]),
		Result:  wire.Format(at["FORMAT"] >> 8),
		Sum:     wire.Sum(at["SUM"]),
		Shell:   wire.Shell(at["SHELL"]),
		Link:    int(at["LINK"]),
		Latency: int(at["LATENCY"]),
	}
}

// serveModel makes a card and returns the link to it.
func serveModel(cfg model.Config) (*modelConn, error) {
	card, err := model.NewCard(cfg)
	if err != nil {
		return nil, err
	}
	host, end := pipe.New(modelPipeBytes)
	m := &modelConn{End: host, served: make(chan struct{})}
	go func() {
		defer close(m.served)
		m.err = card.Serve(end)
	}()
	return m, nil
}

// modelConn is the link to a model card.
type modelConn struct {
	*pipe.End
	served chan struct{} // closed when err is set
	err    error         // what the card said when its link ended
}

// Close ends the link and waits until the card has seen it.
func (m *modelConn) Close() error {
	m.End.Close()
	<-m.served
	return m.err
}

// folderModel is the link to the model of a folder's card; its configuration
// hash is compared with the manifest's.
type folderModel struct {
	*modelConn
	*transport.Manifest
}
