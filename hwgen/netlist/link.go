package netlist

import (
	"errors"
	"slices"
)

// Library knows the modules that are not netlists: the hand-written leaves.
type Library interface {
	// Ports returns the ports of a leaf with these parameters, in the order of declaration.
	// It fails if the leaf or a parameter is unknown.
	Ports(leaf string, params []Pair) ([]Port, error)
}

// Link connects the ports of every instance in the modules to nets, and returns all mistakes in the
// modules. An instance's module is one of these modules, one of the others, or a leaf.
func Link(modules, others []*Module, leaves Library) error {
	var errs []error
	for _, m := range modules {
		l := linker{m, slices.Concat(modules, others), leaves, slices.Clone(m.errs)}
		for _, i := range m.Instances() {
			l.join(i)
		}
		err := errors.Join(m.check(l.errs)...)
		m.linked = err == nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Linked reports whether Link found no mistakes in the module.
func (m *Module) Linked() bool { return m.linked }

// linker connects the instances of one module.
type linker struct {
	*Module
	netlists []*Module
	leaves   Library
	errs     []error
}

func (l *linker) mistake(where, format string, args ...any) {
	l.errs = append(l.errs, l.Module.mistake(where, format, args...))
}

// join connects all ports of an instance, in the order of declaration. An unconnected port gets the
// net of the same name.
func (l *linker) join(i *Instance) {
	ports, ok := l.portsOf(i)
	if !ok {
		return
	}
	given := map[string]Pair{}
	for _, p := range i.Ports {
		given[p.Name] = p
		if !slices.ContainsFunc(ports, func(of Port) bool { return of.Name == p.Name }) {
			l.mistake(p.where, "instance %s: %s has no port %s", i.Name, i.Module, p.Name)
		}
	}
	i.Ports, i.of = nil, nil
	for _, of := range ports {
		p, ok := given[of.Name]
		switch {
		case ok && p.Expr == "":
			continue // reported where it was connected
		case !ok && i.owner.width(of.Name) == 0:
			l.mistake(i.where, "instance %s: port %s of %s is left open", i.Name, of.Name, i.Module)
			continue
		case !ok:
			p = Pair{of.Name, of.Name, i.where}
		}
		i.Ports, i.of = append(i.Ports, p), append(i.of, of)
	}
}

// portsOf returns the ports of an instance's module, and whether they are known.
func (l *linker) portsOf(i *Instance) ([]Port, bool) {
	for _, m := range l.netlists {
		if m.Name != i.Module {
			continue
		}
		for _, p := range i.Params {
			l.mistake(i.where, "instance %s: %s has no parameter %s", i.Name, i.Module, p.Name)
		}
		var ports []Port
		for _, it := range m.Ports {
			if p, ok := it.(*Port); ok {
				ports = append(ports, *p)
			}
		}
		return ports, true
	}
	ports, err := l.leaves.Ports(i.Module, i.Params)
	if err != nil {
		l.mistake(i.where, "instance %s: %w", i.Name, err)
	}
	return ports, err == nil
}
