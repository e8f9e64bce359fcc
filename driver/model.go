package driver

// The scheme model: the Go model of a card, in this process. Only this file of the driver
// imports the model; real and virtual cards work without it.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tributary/driver/element"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// modelPipeBytes is the capacity of the pipe to a model card in each direction.
const modelPipeBytes = 256 << 10

// The card "model:" without a folder or options: 16 lanes, as many ports as workers, else 4,
// and fp32 or the caller's format. Its chunk is the largest that fits into a frame; the rest
// are hwgen's defaults. The model takes no time, so its latency is 0.
const (
	modelLanes  = 16
	modelPorts  = 4
	modelWindow = 8
	modelLink   = 32
)

func init() { transport.Register("model", openModel) }

// openModel opens "model:", "model:DIR" and "model:OPTION=VALUE,...". A folder with an equals
// sign in its name needs a slash, as in ./a=b.
func openModel(_ context.Context, r transport.Request) (transport.Conn, error) {
	if r.Address == "" || strings.Contains(r.Address, "=") && !strings.Contains(r.Address, "/") {
		cfg, err := madeToMeasure(r)
		if err != nil {
			return nil, err
		}
		return serveModel(cfg)
	}
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

// madeToMeasure returns the configuration of the card for the options in the name and the
// caller's needs.
func madeToMeasure(r transport.Request) (model.Config, error) {
	cfg := model.Config{
		Lanes:  modelLanes,
		Ports:  cmp.Or(r.Workers, modelPorts),
		Window: modelWindow,
		Format: cmp.Or(r.Format, wire.FP32),
		Sum:    wire.SumTree,
		Shell:  wire.ShellStream,
		Link:   modelLink,
	}
	if r.Address != "" {
		for option := range strings.SplitSeq(r.Address, ",") {
			if err := setModelOption(&cfg, option); err != nil {
				return cfg, err
			}
		}
	}
	if cfg.Window > wire.MaxWindow {
		return cfg, fmt.Errorf("the model's option window: %d is more than %d, the largest window of a card", cfg.Window, wire.MaxWindow)
	}
	cfg.Result = cmp.Or(cfg.Result, cfg.Format)
	if cfg.Chunk == 0 && cfg.Lanes > 0 {
		cfg.Chunk = largestChunk(cfg)
	}
	return cfg, nil
}

// setModelOption sets one OPTION=VALUE of a name. Options have the names of hwgen's flags.
func setModelOption(cfg *model.Config, option string) error {
	name, value, _ := strings.Cut(option, "=")
	var err error
	switch name {
	case "lanes":
		cfg.Lanes, err = strconv.Atoi(value)
	case "workers":
		cfg.Ports, err = strconv.Atoi(value)
	case "chunk":
		cfg.Chunk, err = strconv.Atoi(value)
	case "window":
		cfg.Window, err = strconv.Atoi(value)
	case "jobs":
		cfg.Jobs, err = strconv.Atoi(value)
	case "saturate":
		cfg.Saturate, err = strconv.ParseBool(value)
	case "format":
		cfg.Format, err = formatNamed(value)
	case "result":
		cfg.Result, err = formatNamed(value)
	case "sum":
		cfg.Sum, err = sumNamed(value)
	default:
		return fmt.Errorf("a model has no option %q; its options are lanes, workers, format, result, sum, saturate, chunk, window and jobs, as in model:format=bf16,sum=exact", name)
	}
	if number := (*strconv.NumError)(nil); errors.As(err, &number) {
		err = fmt.Errorf("%q is not a value for it", value)
	}
	if err != nil {
		return fmt.Errorf("the model's option %s: %w", name, err)
	}
	return nil
}

func formatNamed(name string) (wire.Format, error) {
	var known []string
	for _, f := range wire.Formats {
		if f.Name == name {
			return f.Format, nil
		}
		known = append(known, f.Name)
	}
	return 0, fmt.Errorf("there is no format %q; the formats are %s", name, strings.Join(known, ", "))
}

func sumNamed(name string) (wire.Sum, error) {
	var known []string
	for _, s := range wire.Sums {
		if s.Name == name {
			return s.Sum, nil
		}
		known = append(known, s.Name)
	}
	return 0, fmt.Errorf("there is no sum %q; the sums are %s", name, strings.Join(known, ", "))
}

// largestChunk returns the most elements, a multiple of the lanes, that fit into a data frame
// and into a result frame.
func largestChunk(cfg model.Config) int {
	data, _ := wire.KindData.Info()
	result, _ := wire.KindResult.Info()
	// An unknown format has size 0 and is rejected later.
	in, out := max(1, element.Size(cfg.Format)), max(1, element.Size(cfg.Result))
	most := min((wire.MaxFrameBytes-data.FrameBytes(0))/in, (wire.MaxFrameBytes-result.FrameBytes(0))/out)
	return most / cfg.Lanes * cfg.Lanes
}

// modelConfig returns the configuration of a manifest's card.
func modelConfig(m *transport.Manifest) model.Config {
	at := m.Constants
	return model.Config{
		Lanes:    int(at["LANES"]),
		Ports:    int(at["PORTS"]),
		Chunk:    int(at["CHUNK"]),
		Window:   int(at["WINDOW"]),
		Jobs:     int(at["JOBS"]),
		Format:   wire.Format(at["FORMAT"]),
		Result:   wire.Format(at["FORMAT"] >> formatResultShift),
		Sum:      wire.Sum(at["SUM"]),
		Saturate: at["SUM"]>>sumSaturateShift&1 != 0,
		Shell:    wire.Shell(at["SHELL"]),
		Link:     int(at["LINK"]),
		Latency:  int(at["LATENCY"]),
	}
}

// serveModel starts a model card and returns the link to it.
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
	err    error         // the card's error when its link ended
}

// Close ends the link and waits until the card has noticed.
func (m *modelConn) Close() error {
	m.End.Close()
	<-m.served
	return m.err
}

// folderModel is the link to the model of a folder's card. Open compares its configuration hash
// with the manifest's.
type folderModel struct {
	*modelConn
	*transport.Manifest
}
