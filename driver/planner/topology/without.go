package topology

import "fmt"

// Removed is what a network has lost.
type Removed struct {
	Nodes []ID    // that have left, with their links
	Links [][2]ID // that have failed, both ways
	Cards []ID    // of switches that only forward from now on
}

// Without returns the network without what it has lost. Nodes and links keep their order.
//
// Errors: Error, also if no plan can be made for what is left. A server that workers do not reach any
// more is no error, if all of them reach another one.
func (t *Topology) Without(lost Removed) (*Topology, error) {
	find := func(id ID) (int, error) {
		at, known := t.Find(id)
		if !known {
			return 0, &Error{t.Name, "", fmt.Sprintf("no node has the id %q", id.Text)}
		}
		return at, nil
	}
	left, bare, failed := map[int]bool{}, map[int]bool{}, map[[2]int]bool{}
	for _, set := range []struct {
		ids []ID
		to  map[int]bool
	}{{lost.Nodes, left}, {lost.Cards, bare}} {
		for _, id := range set.ids {
			at, err := find(id)
			if err != nil {
				return nil, err
			}
			set.to[at] = true
		}
	}
	for _, l := range lost.Links {
		var ends [2]int
		for i, id := range l {
			at, err := find(id)
			if err != nil {
				return nil, err
			}
			ends[i] = at
		}
		failed[[2]int{min(ends[0], ends[1]), max(ends[0], ends[1])}] = true
	}
	rest := &Topology{Name: t.Name, Notes: t.Notes}
	place := make([]int, len(t.Nodes))
	for i, n := range t.Nodes {
		if left[i] {
			continue
		}
		if bare[i] {
			n.Ports = 0
		}
		place[i] = len(rest.Nodes)
		rest.Nodes = append(rest.Nodes, n)
	}
	for _, l := range t.Links {
		ends := [2]int{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}
		if failed[ends] {
			delete(failed, ends)
			continue
		}
		if !left[ends[0]] && !left[ends[1]] {
			rest.Links = append(rest.Links, Link{Ends: [2]int{place[l.Ends[0]], place[l.Ends[1]]}, Capacity: l.Capacity})
		}
	}
	for ends := range failed {
		if !left[ends[0]] && !left[ends[1]] {
			return nil, &Error{t.Name, "", fmt.Sprintf("no link joins %q and %q", t.Nodes[ends[0]].ID.Text, t.Nodes[ends[1]].ID.Text)}
		}
	}
	return rest, rest.usable()
}
