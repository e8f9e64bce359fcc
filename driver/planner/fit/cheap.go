package fit

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// Prices are what a stream pays for a unit of rate on everything that has a capacity.
type Prices struct {
	Arcs  []float64
	Nodes []float64 // of switches for each member, of servers for each arrival, of workers
}

// hop is what an arc costs besides its price, so that of paths with one price the shortest is taken.
const hop = 1e-9

// Cheap returns a tree to the server with a low price, and that price. It decides which switches sum as
// a facility location problem: a switch that sums costs the path of its sum, and each worker goes where
// it is cheapest. The search opens and closes one switch at a time, until ctx ends.
func Cheap(ctx context.Context, n *network.Network, server int, prices Prices) (*network.Tree, float64) {
	c := newCheap(n, server, prices)
	open := map[int]bool{}
	for i := range c.places {
		open[i] = i > 0
	}
	open[0] = true // the server
	cost := c.cost(open)
	for improved := true; improved; {
		improved = false
		for i := 1; i < len(c.places) && ctx.Err() == nil; i++ {
			open[i] = !open[i]
			if now := c.cost(open); now < cost-1e-12 {
				cost, improved = now, true
			} else {
				open[i] = !open[i]
			}
		}
	}
	return c.tree(open)
}

// cheap has the distances of a search.
type cheap struct {
	net    *network.Network
	prices Prices
	places []placeOf // the server, then the switches that can sum and reach it
	homes  []int     // nodes of workers, each once
	count  []int64   // workers of a home
	order  [][]int   // of each home: the places, the cheapest first
}

// placeOf is where streams can go.
type placeOf struct {
	node  int
	open  float64 // cost of its sum
	room  int64
	to    []float64 // distance of each node
	first []int     // the first arc of each node's path
}

func newCheap(n *network.Network, server int, prices Prices) *cheap {
	c := &cheap{net: n, prices: prices}
	c.places = append(c.places, c.place(server, math.MaxInt64))
	at := map[int]int{}
	for _, w := range n.Workers {
		node, _ := n.Home(w)
		h, known := at[node]
		if !known {
			h = len(c.homes)
			at[node] = h
			c.homes, c.count = append(c.homes, node), append(c.count, 0)
		}
		c.count[h]++
	}
	for i, node := range n.Nodes {
		if node.Kind != topology.Switch || node.Ports == 0 || math.IsInf(c.places[0].to[i], 1) {
			continue
		}
		p := c.place(i, int64(node.Ports))
		p.open = c.places[0].to[i]
		c.places = append(c.places, p)
	}
	for _, home := range c.homes {
		order := make([]int, len(c.places))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(c.places[a].to[home], c.places[b].to[home])
		})
		c.order = append(c.order, order)
	}
	return c
}

// place computes the distances of all nodes to one, which is part of them. It is Dijkstra's algorithm.
func (c *cheap) place(node int, room int64) placeOf {
	n := c.net
	p := placeOf{node: node, room: room, to: make([]float64, len(n.Nodes)), first: make([]int, len(n.Nodes))}
	for i := range p.to {
		p.to[i] = math.Inf(1)
	}
	p.to[node] = c.prices.Nodes[node]
	queue := &queue{{node, p.to[node]}}
	for queue.Len() > 0 {
		at := heap.Pop(queue).(entry)
		if at.distance > p.to[at.node] || at.node != node && n.Nodes[at.node].Kind != topology.Switch {
			continue
		}
		for _, a := range n.In[at.node] {
			from := n.Arcs[a].From
			if d := at.distance + c.prices.Arcs[a] + hop; d < p.to[from] {
				p.to[from], p.first[from] = d, a
				heap.Push(queue, entry{from, d})
			}
		}
	}
	return p
}

type entry struct {
	node     int
	distance float64
}

type queue []entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].distance < q[j].distance }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(entry)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// assign sends the workers of each home to the cheapest open places with room.
func (c *cheap) assign(open map[int]bool, each func(home, place int, count int64)) {
	room := make([]int64, len(c.places))
	for i, p := range c.places {
		room[i] = p.room
	}
	for h := range c.homes {
		left := c.count[h]
		for _, p := range c.order[h] {
			if left == 0 {
				break
			}
			if count := min(left, room[p]); open[p] && count > 0 {
				room[p] -= count
				left -= count
				each(h, p, count)
			}
		}
	}
}

// cost returns the price of the tree with these places open.
func (c *cheap) cost(open map[int]bool) (cost float64) {
	used := make([]bool, len(c.places))
	c.assign(open, func(home, place int, count int64) {
		cost += float64(count) * c.places[place].to[c.homes[home]]
		used[place] = true
	})
	for i, p := range c.places {
		if used[i] {
			cost += p.open
		}
	}
	return cost
}

// tree returns the tree with these places open, and its price.
func (c *cheap) tree(open map[int]bool) (*network.Tree, float64) {
	t := &network.Tree{Server: c.places[0].node}
	waiting := map[int][]int{} // workers of a home
	for _, w := range c.net.Workers {
		home, _ := c.net.Home(w)
		waiting[home] = append(waiting[home], w)
	}
	used := map[int]bool{}
	c.assign(open, func(h, p int, count int64) {
		home, place := c.homes[h], c.places[p]
		used[p] = true
		for _, w := range waiting[home][:count] {
			_, access := c.net.Home(w)
			t.Members = append(t.Members, network.Member{Worker: w, To: place.node, Path: append(access, c.follow(place, home)...)})
		}
		waiting[home] = waiting[home][count:]
	})
	slices.SortFunc(t.Members, func(a, b network.Member) int { return a.Worker - b.Worker })
	for i, p := range c.places {
		if i > 0 && used[i] {
			t.Sums = append(t.Sums, network.Sum{Switch: p.node, To: t.Server, Path: c.follow(c.places[0], p.node)})
		}
	}
	return t, c.price(t)
}

// follow returns the cheapest path from a node to a place.
func (c *cheap) follow(p placeOf, from int) (path network.Path) {
	for from != p.node {
		path = append(path, p.first[from])
		from = c.net.Arcs[p.first[from]].To
	}
	return path
}

// price returns what a tree pays.
func (c *cheap) price(t *network.Tree) (price float64) {
	load := c.net.Load(t)
	for a, s := range load.Arcs {
		price += float64(s) * c.prices.Arcs[a]
	}
	for i, s := range load.Nodes {
		price += float64(s) * c.prices.Nodes[i]
	}
	return price
}
