package leaf

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"tributary/hwgen/netlist"
)

// Library reads leaves from the rooms of rtl and, unless vendor is "", from the folder of the
// leaves with an FPGA family's own cells. It resolves their sections for cards with an up port: the
// only place that does so. Tools that read rtl by themselves set or omit the macro instead.
type Library struct {
	rtl    fs.FS
	vendor string
	parent bool
	heads  map[string]*Leaf
}

// NewLibrary returns the library of the leaves in rtl, as cards without an up port have them.
func NewLibrary(rtl fs.FS, vendor string) *Library {
	return &Library{rtl: rtl, vendor: vendor, heads: map[string]*Leaf{}}
}

// NewParentLibrary returns the library of the portable leaves, as cards with an up port have them.
func NewParentLibrary(rtl fs.FS) *Library {
	return &Library{rtl: rtl, parent: true, heads: map[string]*Leaf{}}
}

// VendorFolder returns the folder in rtl of the leaves with a family's cells.
func VendorFolder(family string) string { return path.Join("board", family) }

// Read returns the text of a leaf. It prefers a portable leaf to a family's own.
func (l *Library) Read(name string) ([]byte, error) {
	found, err := fs.Glob(l.rtl, "*/"+name+".v")
	if err == nil && len(found) == 0 && l.vendor != "" {
		found, err = fs.Glob(l.rtl, path.Join(l.vendor, name+".v"))
	}
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("no leaf %s in rtl", name)
	case len(found) > 1:
		return nil, fmt.Errorf("leaf %s: %d files of that name, want 1", name, len(found))
	}
	return l.resolved(found[0])
}

// resolved reads a leaf's file and resolves its sections.
func (l *Library) resolved(file string) ([]byte, error) {
	text, err := fs.ReadFile(l.rtl, file)
	if err != nil {
		return nil, err
	}
	resolved, err := Resolve(string(text), Parent, l.parent)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return []byte(resolved), nil
}

// Own returns the vendor's leaf of that name, or "".
func (l *Library) Own(name string) (string, error) {
	if l.vendor == "" {
		return "", nil
	}
	found, err := fs.Glob(l.rtl, path.Join(l.vendor, name+".v"))
	if err != nil || len(found) == 0 {
		return "", err
	}
	text, err := l.resolved(found[0])
	return string(text), err
}

// Constraints returns the vendor's script that constrains each instance of a leaf, or "".
func (l *Library) Constraints(name string) (string, error) {
	text, err := fs.ReadFile(l.rtl, path.Join(l.vendor, name+".tcl"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Ports returns the ports of a leaf with these parameters.
func (l *Library) Ports(name string, params []netlist.Pair) ([]netlist.Port, error) {
	head, ok := l.heads[name]
	if !ok {
		text, err := l.Read(name)
		if err != nil {
			return nil, err
		}
		if head, err = Parse(string(text)); err != nil {
			return nil, err
		}
		l.heads[name] = head
	}
	return head.Bind(params)
}
