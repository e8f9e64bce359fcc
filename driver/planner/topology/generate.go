package topology

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
)

// Generate returns a network of a regular shape: the name is its shape and its parameters, as in
// fat-tree:k=8 or leaf-spine:leaves=4,spines=2,hosts=8.
//
//	fat-tree    k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, and up to
//	            k^3/4 hosts (Al-Fares and others, SIGCOMM 2008)
//	leaf-spine  each leaf has a link to each spine
//	random      a tree of switches with some links more; capacities, ports, rates and numbers are drawn
//	            by seed=N
//
// In the first two, the first host is the server, or the first servers=N, one at each edge switch or leaf; the others are
// workers. hosts=N is the number of hosts at each; capacity=RATE that of links to hosts, and over=N
// divides it for links between switches. ports=N and rate=RATE are those of the switches. random: takes
// switches=N, workers=N and servers=N.
func Generate(name string) (*Topology, error) {
	shape, text, _ := strings.Cut(name, ":")
	g := &generator{t: &Topology{Name: name}, parameters: map[string]string{}}
	for _, part := range strings.Split(text, ",") {
		key, value, given := strings.Cut(part, "=")
		if part != "" && !given {
			return nil, &Error{name, "", fmt.Sprintf("%q is no parameter; write %s:NAME=VALUE,...", part, shape)}
		}
		if part != "" {
			g.parameters[key] = value
		}
	}
	switch shape {
	case "fat-tree":
		g.fatTree()
	case "leaf-spine":
		g.leafSpine()
	case "random":
		g.random()
	default:
		return nil, &Error{name, "", "there is no such shape; there are fat-tree, leaf-spine and random"}
	}
	for key := range g.parameters {
		g.wrong = append(g.wrong, fmt.Sprintf("%s has no parameter %q", shape, key))
	}
	if len(g.wrong) > 0 {
		sort.Strings(g.wrong)
		return nil, &Error{name, "", g.wrong[0]}
	}
	return g.t, g.t.Check()
}

// Generated tells whether a name is that of a shape rather than of a file.
func Generated(name string) bool {
	return strings.HasPrefix(name, "fat-tree:") || strings.HasPrefix(name, "leaf-spine:") || strings.HasPrefix(name, "random:")
}

type generator struct {
	t          *Topology
	parameters map[string]string // that were not yet used
	wrong      []string

	ports          int
	rate, capacity *big.Rat // of switches, of links to hosts
	between        *big.Rat // of links between switches
}

// whole takes a parameter that is a whole number.
func (g *generator) whole(key string, otherwise, least, most int) int {
	text, given := g.parameters[key]
	delete(g.parameters, key)
	if !given {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		g.wrong = append(g.wrong, fmt.Sprintf("%s=%s: it must be a whole number from %d to %d", key, text, least, most))
		return otherwise
	}
	return n
}

// quantity takes a parameter that is a rate.
func (g *generator) quantity(key string, otherwise *big.Rat) *big.Rat {
	text, given := g.parameters[key]
	delete(g.parameters, key)
	if !given {
		return otherwise
	}
	value, _, err := Quantity(text)
	if err != nil || value.Sign() <= 0 {
		g.wrong = append(g.wrong, fmt.Sprintf("%s=%s: it must be a rate above 0, such as 100", key, text))
		return otherwise
	}
	return value
}

// common takes the parameters that all shapes have. It returns the number of servers.
func (g *generator) common() (servers int) {
	g.ports = g.whole("ports", 64, 0, 1<<20)
	g.rate = g.quantity("rate", nil)
	g.capacity = g.quantity("capacity", big.NewRat(100, 1))
	g.between = new(big.Rat).Quo(g.capacity, big.NewRat(int64(g.whole("over", 1, 1, 1000)), 1))
	return g.whole("servers", 1, 1, 1000)
}

func (g *generator) node(kind Kind, format string, args ...any) int {
	n := Node{ID: ID{Text: fmt.Sprintf(format, args...)}, Kind: kind}
	if kind == Switch {
		n.Ports, n.Rate = g.ports, g.rate
	}
	g.t.Nodes = append(g.t.Nodes, n)
	return len(g.t.Nodes) - 1
}

func (g *generator) link(a, b int, capacity *big.Rat) {
	g.t.Links = append(g.t.Links, Link{Ends: [2]int{a, b}, Capacity: [2]*big.Rat{capacity, capacity}})
}

// hosts adds a number of hosts at each switch: first the servers.
func (g *generator) hosts(at []int, each, servers int) {
	if servers >= each*len(at) {
		g.wrong = append(g.wrong, fmt.Sprintf("servers=%d: there are only %d hosts", servers, each*len(at)))
		return
	}
	for h := range each * len(at) {
		node := 0
		if h < servers {
			node = g.node(Server, "server-%d", h)
		} else {
			node = g.node(Worker, "worker-%d", h-servers)
		}
		g.link(at[h%len(at)], node, g.capacity)
	}
}

func (g *generator) fatTree() {
	servers := g.common()
	k := g.whole("k", 4, 2, 64)
	if k%2 != 0 {
		g.wrong = append(g.wrong, fmt.Sprintf("k=%d: it must be even", k))
		return
	}
	half := k / 2
	each := g.whole("hosts", half, 1, 1<<12)
	var cores, edges []int
	for c := range half * half {
		cores = append(cores, g.node(Switch, "core-%d", c))
	}
	for pod := range k {
		var pods []int
		for a := range half {
			pods = append(pods, g.node(Switch, "aggregation-%d-%d", pod, a))
			for c := range half {
				g.link(pods[a], cores[a*half+c], g.between)
			}
		}
		for e := range half {
			edge := g.node(Switch, "edge-%d-%d", pod, e)
			edges = append(edges, edge)
			for _, a := range pods {
				g.link(edge, a, g.between)
			}
		}
	}
	g.hosts(edges, each, servers)
}

func (g *generator) leafSpine() {
	servers := g.common()
	var spines, leaves []int
	for s := range g.whole("spines", 2, 1, 1024) {
		spines = append(spines, g.node(Switch, "spine-%d", s))
	}
	for l := range g.whole("leaves", 4, 1, 1024) {
		leaves = append(leaves, g.node(Switch, "leaf-%d", l))
		for _, s := range spines {
			g.link(leaves[l], s, g.between)
		}
	}
	g.hosts(leaves, g.whole("hosts", 8, 1, 1<<12), servers)
}

func (g *generator) random() {
	random := rand.New(rand.NewPCG(uint64(g.whole("seed", 0, 0, 1<<31)), 7))
	switches := g.whole("switches", 4+random.IntN(6), 1, 1024)
	workers := g.whole("workers", 4+random.IntN(13), 1, 1<<14)
	servers := g.whole("servers", 1, 1, 1024)
	pick := func(of ...int64) *big.Rat { return big.NewRat(of[random.IntN(len(of))], 1) }
	for s := range switches {
		if g.ports, g.rate = 0, nil; random.IntN(10) < 7 {
			g.ports, g.rate = 2+random.IntN(7), pick(50, 100, 200, 400)
		}
		g.node(Switch, "switch-%d", s)
	}
	linked := map[[2]int]bool{}
	join := func(a, b int) {
		if a, b = min(a, b), max(a, b); a != b && !linked[[2]int{a, b}] {
			linked[[2]int{a, b}] = true
			g.link(a, b, pick(20, 40, 50, 100))
		}
	}
	for s := 1; s < switches; s++ {
		join(random.IntN(s), s)
	}
	for range random.IntN(switches + 1) {
		join(random.IntN(switches), random.IntN(switches))
	}
	for s := range servers {
		server := g.node(Server, "server-%d", s)
		g.t.Nodes[server].Rate = pick(50, 100, 150)
		g.link(random.IntN(switches), server, big.NewRat(100, 1))
	}
	for w := range workers {
		worker := g.node(Worker, "worker-%d", w)
		g.link(random.IntN(switches), worker, big.NewRat(100, 1))
	}
}
