package sim

// Clos describes a folded Clos of two levels: each leaf switch has a link to each spine switch.
type Clos struct {
	Racks, Spines int
	Workers       int // hosts of the job in each rack
	Servers       int // other hosts in each rack
	Host          LinkConfig
	Core          LinkConfig // between leaf and spine
	// LeafCard and SpineCard are the cards beside the switches.
	LeafCard, SpineCard CardConfig
}

// hosts returns the number of hosts in a rack.
func (c Clos) hosts() int { return c.Workers + c.Servers }

// Network is a Clos with its switches and hosts. Node numbers are those of hosts, rack by rack,
// then leaves, then spines. In each rack the workers come first.
type Network struct {
	Clos
	*Engine
	Hosts  []*Host
	Leaves []*Leaf
	Spines []*Spine
}

// Host is a machine with one link. Its network interface marks as a switch does, as in the set-ups
// of DCTCP's authors for ns-2, and drops nothing. Without marks, a flow whose own interface is the
// bottleneck would fill it without end, and delay all others of the host.
type Host struct {
	id      int32
	nic     *Port
	down    *Port // of its leaf
	workers []*Worker
}

// Leaf is the switch of a rack.
type Leaf struct {
	network *Network
	id      int32
	rack    int
	up      []*Port // by spine
	cards   []*Card // by job; nil where a job has none
}

// Spine is a switch between racks.
type Spine struct {
	network *Network
	id      int32
	down    []*Port // by rack
	cards   []*Card
}

// NewNetwork builds the switches and links.
func NewNetwork(c Clos) *Network {
	n := &Network{Clos: c, Engine: &Engine{}}
	hosts := c.Racks * c.hosts()
	for i := range c.Racks {
		n.Leaves = append(n.Leaves, &Leaf{network: n, id: int32(hosts + i), rack: i})
	}
	for i := range c.Spines {
		spine := &Spine{network: n, id: int32(hosts + c.Racks + i)}
		for _, leaf := range n.Leaves {
			spine.down = append(spine.down, newPort(n.Engine, c.Core, leaf))
			leaf.up = append(leaf.up, newPort(n.Engine, c.Core, spine))
		}
		n.Spines = append(n.Spines, spine)
	}
	nic := c.Host
	nic.Limit = 0
	for i := range hosts {
		h := &Host{id: int32(i)}
		h.nic = newPort(n.Engine, nic, n.Leaves[i/c.hosts()])
		h.down = newPort(n.Engine, c.Host, h)
		n.Hosts = append(n.Hosts, h)
	}
	return n
}

// workerHosts returns count of a rack's workers.
func (n *Network) workerHosts(rack, first, count int) []*Host {
	at := rack*n.hosts() + first
	return n.Hosts[at : at+count]
}

// ServerHosts returns the hosts with other traffic.
func (n *Network) ServerHosts() (hosts []*Host) {
	for i, h := range n.Hosts {
		if i%n.hosts() >= n.Workers {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// rackOf returns the rack of a host or leaf, or -1 for a spine.
func (n *Network) rackOf(node int32) int {
	switch i := int(node); {
	case i < len(n.Hosts):
		return i / n.hosts()
	case i < len(n.Hosts)+n.Racks:
		return i - len(n.Hosts)
	}
	return -1
}

func (h *Host) receive(p *Packet) {
	if p.flow != nil {
		p.flow.receive(p)
		return
	}
	h.workers[p.job.index].receive(p)
	h.release(p)
}

func (h *Host) release(p *Packet) { h.nic.engine.release(p) }

func (l *Leaf) receive(p *Packet) {
	if p.dst == l.id {
		l.cards[p.job.index].receive(p)
		return
	}
	l.send(p)
}

// send forwards a packet by its destination: down to a host, or up to the spine that it is for, or
// that its hash names.
func (l *Leaf) send(p *Packet) {
	n := l.network
	switch rack := n.rackOf(p.dst); {
	case rack < 0:
		l.up[int(p.dst)-len(n.Hosts)-n.Racks].send(p)
	case rack != l.rack:
		l.up[spread(p.hash, l.rack, rack)%uint32(n.Clos.Spines)].send(p)
	default:
		n.Hosts[p.dst].down.send(p)
	}
}

func (s *Spine) receive(p *Packet) {
	if p.dst == s.id {
		s.cards[p.job.index].receive(p)
		return
	}
	s.send(p)
}

func (s *Spine) send(p *Packet) { s.down[s.network.rackOf(p.dst)].send(p) }

// spread mixes a flow's hash with the racks of its ends (the finalizer of MurmurHash3).
func spread(hash uint32, from, to int) uint32 {
	h := hash ^ uint32(min(from, to))<<16 ^ uint32(max(from, to)) // both ways take the same spine
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// CorePorts returns the ports between leaves and spines.
func (n *Network) CorePorts() (ports []*Port) {
	for _, l := range n.Leaves {
		ports = append(ports, l.up...)
	}
	for _, s := range n.Spines {
		ports = append(ports, s.down...)
	}
	return ports
}

// HostDrops returns the packets that the leaves dropped before the links to hosts.
func (n *Network) HostDrops() (dropped int64) {
	for _, h := range n.Hosts {
		dropped += h.down.Dropped
	}
	return dropped
}
