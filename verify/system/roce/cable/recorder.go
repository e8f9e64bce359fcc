package cable

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"tributary/driver/frame"
	"tributary/driver/virtual/ethernet"
)

// Recorder writes a pcapng of the frames that enter the cables of a card, with FCS: interface N is the card's
// Ethernet port N, and frames from the card are outbound. Frames that are lost on their way are in it.
type Recorder struct {
	mu     sync.Mutex
	out    *pcapgo.NgWriter
	failed error // the first
}

// NewRecorder begins a pcapng for a card with at least one port.
func NewRecorder(out io.Writer, ports int) (*Recorder, error) {
	w, err := pcapgo.NewNgWriterInterface(out, portInterface(0), pcapgo.DefaultNgWriterOptions)
	for port := 1; port < ports && err == nil; port++ {
		_, err = w.AddInterface(portInterface(port))
	}
	return &Recorder{out: w}, err
}

func portInterface(port int) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: fmt.Sprintf("port%d", port), LinkType: layers.LinkTypeEthernet}
}

// Record writes a frame. Several goroutines may call it.
func (r *Recorder) Record(at Place, bytes []byte) {
	flags := &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound, FCSLen: pcapgo.NewNgEpbFlagFCSLength(ethernet.FCSBytes)}
	if at.Direction == frame.FromCard {
		flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return
	}
	r.failed = r.out.WritePacketWithOptions(gopacket.CaptureInfo{
		Timestamp: time.Now(), CaptureLength: len(bytes), Length: len(bytes), InterfaceIndex: at.Port,
	}, bytes, pcapgo.NgPacketOptions{Flags: flags})
}

// Flush writes out what has been recorded, and returns the first error.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.failed
	}
	return r.out.Flush()
}
