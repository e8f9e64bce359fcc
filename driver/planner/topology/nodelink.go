package topology

import (
	"encoding/json"
	"errors"
	"fmt"
)

// nodeLink is NetworkX node-link JSON. It has edges (from NetworkX 3.4 on) or links (before).
type nodeLink struct {
	Nodes []map[string]any `json:"nodes"`
	Edges []map[string]any `json:"edges"`
	Links []map[string]any `json:"links"`

	Directed bool `json:"directed"`
}

// parseNodeLink reads node-link JSON.
func parseNodeLink(name string, data []byte) (*raw, error) {
	var file nodeLink
	if place, why := Decode(data, false, &file); why != "" {
		return nil, &Error{name, place, "this is no node-link JSON: " + why}
	}
	switch {
	case file.Nodes == nil:
		return nil, &Error{name, "", `it has no "nodes"; write the graph with networkx.node_link_data`}
	case file.Edges == nil && file.Links == nil:
		return nil, &Error{name, "", `it has neither "edges" nor "links"; write the graph with networkx.node_link_data`}
	case file.Edges != nil && file.Links != nil:
		return nil, &Error{name, "", `it has both "edges" and "links"; keep the one that holds the graph's links`}
	}
	r := &raw{name: name, directed: file.Directed}
	for i, n := range file.Nodes {
		where := fmt.Sprintf("nodes[%d]", i)
		id, err := idOf(n["id"])
		if err != nil {
			return nil, &Error{name, where, `"id" ` + err.Error()}
		}
		r.nodes = append(r.nodes, element{place: where + fmt.Sprintf(" (%q)", id.Text), id: id, attributes: scalars(n)})
	}
	key, edges := "edges", file.Edges
	if edges == nil {
		key, edges = "links", file.Links
	}
	for i, e := range edges {
		where := fmt.Sprintf("%s[%d]", key, i)
		source, err := idOf(e["source"])
		if err != nil {
			return nil, &Error{name, where, `"source" ` + err.Error()}
		}
		target, err := idOf(e["target"])
		if err != nil {
			return nil, &Error{name, where, `"target" ` + err.Error()}
		}
		where += fmt.Sprintf(" (%q to %q)", source.Text, target.Text)
		r.edges = append(r.edges, element{place: where, id: source, target: target, attributes: scalars(e)})
	}
	return r, nil
}

// idOf returns the name of a node in JSON.
func idOf(value any) (ID, error) {
	switch v := value.(type) {
	case nil:
		return ID{}, errors.New("is missing")
	case string:
		if v == "" {
			return ID{}, errors.New("is empty")
		}
		return ID{Text: v}, nil
	case json.Number:
		return ID{Text: v.String(), Number: true}, nil
	}
	return ID{}, errors.New("is neither a string nor a number")
}

// scalars returns the attributes as text. What is neither a string nor a number has a text that is no
// attribute's value, so that it is refused where it matters.
func scalars(from map[string]any) map[string]string {
	to := map[string]string{}
	for key, value := range from {
		switch v := value.(type) {
		case string:
			to[key] = v
		case json.Number:
			to[key] = v.String()
		case nil:
			to[key] = "null"
		case bool:
			to[key] = fmt.Sprint(v)
		case []any:
			to[key] = "[...]"
		case map[string]any:
			to[key] = "{...}"
		}
	}
	return to
}
