package driver_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// underRoCE is a one-armed card for connections.
var underRoCE = model.Config{Lanes: 4, Ports: 4, Window: 16, Jobs: 2, Shell: wire.ShellRoCE, Link: 64}

// openRoCE opens a card in memory.
func openRoCE(t *testing.T, cfg model.Config) *driver.Card {
	t.Helper()
	card, err := driver.OpenPackets(t.Context(), "card", serveInMemory(t, cfg))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, card.Close()) })
	return card
}

// ringOfThree are those of a ring with an MTU of 1,024 bytes.
func ringOfThree() (ranks []driver.ConnectedRank) {
	for r := range 3 {
		ranks = append(ranks, driver.ConnectedRank{
			Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + r)}), MAC: net.HardwareAddr{2, 0, 0, 0, 1, byte(r)},
			ReceiveQPN: uint32(0x10 + r), FirstPSN: uint32(0xfffff0 + r), MTU: 1024,
		})
	}
	return ranks
}

// holds checks the value of a register.
func holds(t *testing.T, card *driver.Card, addr uint32, want uint64) {
	t.Helper()
	got, err := card.ReadRegister(t.Context(), addr)
	require.NoError(t, err)
	assert.Equal(t, want, got, "%#x", addr)
}

// TestConnect: the card has what ROCE.md, section 2, says, and drops the packets of an ended job until its
// connections are removed.
func TestConnect(t *testing.T) {
	card := openRoCE(t, underRoCE)
	ctx := t.Context()
	k, err := card.Connect(ctx, driver.ConnectConfig{Ranks: ringOfThree(), Ports: []int{0, 1, 3}})
	require.NoError(t, err)
	require.NoError(t, k.Err())
	assert.Zero(t, k.Number())
	for _, want := range []struct{ port, ip, mac, connection uint64 }{
		{0, 0x0a000001, 0x02_0000_0001_00, 0x01_fffff0_000011}, {1, 0x0a000002, 0x02_0000_0001_01, 0x03_fffff1_000012}, {3, 0x0a000003, 0x02_0000_0001_02, 0x00_fffff2_000010},
	} {
		port := int(want.port)
		holds(t, card, wire.TableAddr(wire.RegJobAddress, 0, port), 4791<<32|want.ip)
		holds(t, card, wire.TableAddr(wire.RegJobMAC, 0, port), want.mac)
		holds(t, card, wire.JobConnectionAddr(0, port), want.connection)
	}
	holds(t, card, wire.JobConnectionAddr(0, 2), 0)
	holds(t, card, wire.RegJobMembers, 0b1011)
	holds(t, card, wire.RegJobChunk, 256)
	holds(t, card, wire.RegJobWindow, 8)
	holds(t, card, wire.RegJobSlots, 16<<16)

	other := ringOfThree()[:2]
	other[0].Address, other[1].MAC = netip.MustParseAddr("10.0.0.9"), net.HardwareAddr{6, 5, 4, 3, 2, 1}
	_, err = card.Connect(ctx, driver.ConnectConfig{Ranks: other})
	var refused *driver.RefusedError
	require.ErrorAs(t, err, &refused, "rank 1's queue pair receives two connections")
	assert.Equal(t, wire.CodeBadConnection, refused.Code)
	other[1].ReceiveQPN = 0x99
	second, err := card.Connect(ctx, driver.ConnectConfig{Ranks: other, Next: []int{1, 0}, Window: 4})
	require.NoError(t, err)
	assert.Equal(t, 1, second.Number())
	holds(t, card, wire.JobConnectionAddr(1, 0), 0x01_fffff0_000099)

	require.ErrorAs(t, k.Disconnect(ctx), &refused)
	assert.Equal(t, wire.CodeBusy, refused.Code)
	require.NoError(t, k.End(ctx))
	var ended *driver.EndedError
	require.ErrorAs(t, k.Err(), &ended)
	holds(t, card, wire.JobConnectionAddr(0, 1), 0x03_fffff1_000012)
	require.NoError(t, k.Disconnect(ctx))
	holds(t, card, wire.JobConnectionAddr(0, 1), 0)
	holds(t, card, wire.JobConnectionAddr(1, 0), 0x01_fffff0_000099)
	require.NoError(t, second.Err())
	require.NoError(t, card.Reset(ctx))
	require.ErrorAs(t, second.Err(), &ended)
}

// TestConnectRefuses: what cannot be right never reaches the card.
func TestConnectRefuses(t *testing.T) {
	card := openRoCE(t, underRoCE)
	for what, edit := range map[string]func(c *driver.ConnectConfig){
		"ranks":         func(c *driver.ConnectConfig) { c.Ranks = nil },
		"MTU":           func(c *driver.ConnectConfig) { c.Ranks[2].MTU = 2048 },
		"MTU: 1000":     func(c *driver.ConnectConfig) { c.Ranks[0].MTU = 1000 },
		"workers":       func(c *driver.ConnectConfig) { c.Ranks = append(c.Ranks, c.Ranks...) },
		"ports":         func(c *driver.ConnectConfig) { c.Ports = []int{0, 1} },
		"window":        func(c *driver.ConnectConfig) { c.Window = 3 },
		"next":          func(c *driver.ConnectConfig) { c.Next = []int{1, 2} },
		"next: rank 2":  func(c *driver.ConnectConfig) { c.Next = []int{1, 2, 2} },
		"next: rank 1":  func(c *driver.ConnectConfig) { c.Next = []int{1, 3, 2} },
		"address":       func(c *driver.ConnectConfig) { c.Ranks[1].Address = netip.IPv6Loopback() },
		"MAC":           func(c *driver.ConnectConfig) { c.Ranks[1].MAC = nil },
		"Ethernet port": func(c *driver.ConnectConfig) { c.Ranks[1].EthernetPort = 256 },
		"QPN: rank 1":   func(c *driver.ConnectConfig) { c.Ranks[1].ReceiveQPN = 1 },
		"QPN: rank 2":   func(c *driver.ConnectConfig) { c.Ranks[2].ReceiveQPN = 1 << 24 },
		"PSN":           func(c *driver.ConnectConfig) { c.Ranks[1].FirstPSN = 1 << 24 },
	} {
		cfg := driver.ConnectConfig{Ranks: ringOfThree()}
		edit(&cfg)
		_, err := card.Connect(t.Context(), cfg)
		var input *driver.InputError
		require.ErrorAs(t, err, &input, what)
		assert.ErrorContains(t, err, what)
	}
	_, err := card.Configure(t.Context(), driver.JobConfig{})
	require.ErrorContains(t, err, "use Connect")
	holds(t, card, wire.RegJobToken, 0)

	udp, err := driver.OpenPackets(t.Context(), "card", serveInMemory(t, smallUDP))
	require.NoError(t, err)
	defer udp.Close()
	_, err = udp.Connect(t.Context(), driver.ConnectConfig{Ranks: ringOfThree()})
	require.ErrorContains(t, err, "-shell roce")
}

// copying is a link on which a copy of an earlier write arrives before the first write of a register.
type copying struct {
	*memory
	at     uint32
	addr   uint32
	value  uint64
	copied bool
}

func (c *copying) WritePackets(buf []byte, ends []int) error {
	start := 0
	for _, end := range ends {
		h := model.ParseHeader(buf[start:end])
		if h.Kind == wire.KindRegWrite && h.VID == c.at && !c.copied {
			c.copied = true
			c.replay(c.addr, c.value)
		}
		start = end
	}
	return c.memory.WritePackets(buf, ends)
}

// TestConnectAgainstLateCopies: a copy of an earlier write arrives between staging and commit. The
// connections of the job are right nevertheless, in a later epoch.
func TestConnectAgainstLateCopies(t *testing.T) {
	link := &copying{memory: serveInMemory(t, underRoCE).(*memory), at: wire.RegJobCommit, addr: wire.ConnectionAddr(1), value: 0x02_000000_000077}
	card, err := driver.OpenPackets(t.Context(), "card", link)
	require.NoError(t, err)
	defer card.Close()
	_, err = card.Connect(t.Context(), driver.ConnectConfig{Ranks: ringOfThree()})
	require.NoError(t, err)
	assert.True(t, link.copied)
	holds(t, card, wire.JobConnectionAddr(0, 1), 0x02_fffff1_000012)
}

// TestNeighbours: a one-armed card has those that were set last.
func TestNeighbours(t *testing.T) {
	card := openRoCE(t, underRoCE)
	ctx := t.Context()
	host := func(i byte) driver.Neighbour {
		return driver.Neighbour{Address: netip.AddrFrom4([4]byte{10, 0, 0, i}), MAC: net.HardwareAddr{2, 0, 0, 0, 1, i}}
	}
	require.NoError(t, card.SetNeighbours(ctx, []driver.Neighbour{host(1), host(2), host(3)}))
	require.NoError(t, card.SetNeighbours(ctx, []driver.Neighbour{host(4), host(5)}))
	for i, want := range []struct{ ip, mac uint64 }{{0x0a000004, 0x02_0000_0001_04}, {0x0a000005, 0x02_0000_0001_05}, {}, {}} {
		holds(t, card, wire.NeighbourAddr(wire.RegNeighbourAddress, i), want.ip)
		holds(t, card, wire.NeighbourAddr(wire.RegNeighbourMAC, i), want.mac)
	}
	for _, wrong := range [][]driver.Neighbour{make([]driver.Neighbour, 5), {{Address: host(1).Address}}, {{MAC: host(1).MAC}}} {
		var input *driver.InputError
		require.ErrorAs(t, card.SetNeighbours(ctx, wrong), &input)
	}
	inPath := underRoCE
	inPath.Ethernet = 2
	card = openRoCE(t, inPath)
	var refused *driver.RefusedError
	require.ErrorAs(t, card.SetNeighbours(ctx, nil), &refused)
	assert.Equal(t, wire.CodeBadAddress, refused.Code)
}

// TestNetworkCardsUnderRoCE: their names choose the shell, and they need Ethernet ports.
func TestNetworkCardsUnderRoCE(t *testing.T) {
	card, err := driver.NewNetworkCard("model:shell=roce,lanes=4", wire.Address{Station: 1}, 2)
	require.NoError(t, err)
	cfg := card.(*model.Endpoint).Config()
	assert.Equal(t, wire.ShellRoCE, cfg.Shell)
	assert.Equal(t, 2, cfg.Ethernet)
	assert.Equal(t, 1024, cfg.Chunk, "4,096 bytes of fp32")
	_, err = driver.NewNetworkCard("model:shell=roce", wire.Address{Station: 1}, 0)
	require.ErrorContains(t, err, "needs Ethernet ports")
	_, err = driver.NewNetworkCard("model:shell=none", wire.Address{Station: 1}, 1)
	require.ErrorContains(t, err, "it can only be roce")
	_, err = driver.NewNetworkCard("cpu:shell=roce", wire.Address{Station: 1}, 1)
	require.Error(t, err)
	_, err = driver.Open(t.Context(), "model:shell=roce")
	require.ErrorContains(t, err, "-port PORT")
}
