package topology

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
)

// graphML is what a topology needs of a GraphML file.
type graphML struct {
	XMLName xml.Name `xml:"graphml"`
	Keys    []struct {
		ID      string  `xml:"id,attr"`
		Name    string  `xml:"attr.name,attr"`
		Default *string `xml:"default"`
		For     string  `xml:"for,attr"`
	} `xml:"key"`
	Graphs []struct {
		Default string `xml:"edgedefault,attr"`
		Nodes   []struct {
			ID   string        `xml:"id,attr"`
			Data []graphMLData `xml:"data"`
		} `xml:"node"`
		Edges []struct {
			Source   string        `xml:"source,attr"`
			Target   string        `xml:"target,attr"`
			Directed string        `xml:"directed,attr"`
			Data     []graphMLData `xml:"data"`
		} `xml:"edge"`
	} `xml:"graph"`
}

type graphMLData struct {
	Key  string `xml:"key,attr"`
	Text string `xml:",chardata"`
}

// parseGraphML reads GraphML.
func parseGraphML(name string, data []byte) (*raw, error) {
	var file graphML
	if err := xml.NewDecoder(bytes.NewReader(data)).Decode(&file); err != nil {
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &Error{name, fmt.Sprintf("line %d", syntax.Line), "this is no GraphML: " + syntax.Msg}
		}
		return nil, &Error{name, "", "this is no GraphML: " + err.Error()}
	}
	if len(file.Graphs) != 1 {
		return nil, &Error{name, "", fmt.Sprintf("it has %d graphs; keep one", len(file.Graphs))}
	}
	attributes := func(of string, data []graphMLData) map[string]string {
		m := map[string]string{}
		for _, k := range file.Keys {
			if k.Default != nil && (k.For == of || k.For == "all") {
				m[k.Name] = *k.Default
			}
			for _, d := range data {
				if d.Key == k.ID {
					m[k.Name] = d.Text
				}
			}
		}
		return m
	}
	graph := file.Graphs[0]
	r := &raw{name: name, directed: graph.Default == "directed"}
	for i, n := range graph.Nodes {
		if n.ID == "" {
			return nil, &Error{name, fmt.Sprintf("nodes[%d]", i), `"id" is missing`}
		}
		r.nodes = append(r.nodes, element{place: fmt.Sprintf("nodes[%d] (%q)", i, n.ID), id: ID{Text: n.ID}, attributes: attributes("node", n.Data)})
	}
	for i, e := range graph.Edges {
		where := fmt.Sprintf("edges[%d] (%q to %q)", i, e.Source, e.Target)
		if directed := e.Directed == "true"; e.Directed != "" && directed != r.directed {
			return nil, &Error{name, where, "it is directed and other edges are not, or the reverse; use one kind"}
		}
		r.edges = append(r.edges, element{place: where, id: ID{Text: e.Source}, target: ID{Text: e.Target}, attributes: attributes("edge", e.Data)})
	}
	return r, nil
}
