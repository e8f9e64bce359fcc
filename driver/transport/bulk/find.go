package bulk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"tributary/driver/transport"
)

// Card is an attached card, or a device that may lead to one.
type Card struct {
	Name  string // for driver.Open
	Ident []byte // its identification block; nil if unknown
	Err   error  // why it cannot be opened
}

// Register returns the value of a register in the identification block.
func (c *Card) Register(addr uint32) uint64 { return binary.LittleEndian.Uint64(c.Ident[addr:]) }

// candidate is an open device that may lead to a card.
type candidate struct {
	Card
	device Device
	serial string
}

// closed is a device that could not be opened.
type closed struct {
	Found
	number Number
}

// survey is the result of a search for the devices of a name.
type survey struct {
	selector
	cards   []candidate
	closed  []closed
	strange []string // devices that are not cards, with the reason
}

// look opens the attached devices. It closes those that are not cards.
func (s selector) look(bus Bus) (*survey, error) {
	v := &survey{selector: s}
	for _, n := range s.numbers {
		found, err := bus.Devices(n.Vendor, n.Product)
		if err != nil {
			v.close(nil)
			return nil, err
		}
		for _, f := range found {
			v.add(n, f)
		}
	}
	return v, nil
}

// add adds a device to the survey.
func (v *survey) add(n Number, f Found) {
	if f.Device == nil {
		v.closed = append(v.closed, closed{f, n})
		return
	}
	block, err := v.Check(f)
	var serial string
	if err == nil {
		if serial, err = f.Device.Serial(); err != nil {
			err = fmt.Errorf("its serial number cannot be read: %w", err)
		}
	}
	if err != nil {
		v.strange = append(v.strange, fmt.Sprintf("%s: %s", f.Place, err))
		_ = f.Device.Close()
		return
	}
	v.cards = append(v.cards, candidate{Card{Name: v.name(n, serial), Ident: block}, f.Device, serial})
}

// close closes all cards except but, which may be nil.
func (v *survey) close(but *candidate) {
	for i := range v.cards {
		if &v.cards[i] != but {
			_ = v.cards[i].device.Close()
		}
	}
}

// choose returns the only card that matches the selector.
func (v *survey) choose() (*candidate, error) {
	var fitting []*candidate
	for i := range v.cards {
		if v.serial == "" || v.cards[i].serial == v.serial {
			fitting = append(fitting, &v.cards[i])
		}
	}
	switch len(fitting) {
	case 0:
		return nil, v.none()
	case 1:
		return fitting[0], nil
	}
	return nil, fmt.Errorf("%d %ss are plugged in; name one of them: %s", len(fitting), v.Noun, v.names())
}

// names lists the names of the cards.
func (v *survey) names() string {
	var names []string
	for _, c := range v.cards {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// none returns the error when no card matches.
func (v *survey) none() error {
	switch {
	case len(v.closed) > 0:
		return v.accessError(v.closed[0])
	case len(v.cards) > 0:
		return fmt.Errorf("no %s with serial number %s is plugged in; name one of these: %s", v.Noun, v.serial, v.names())
	case len(v.strange) > 0:
		return fmt.Errorf("device %s is no %s (%s)", v.numbered(), v.What, strings.Join(v.strange, "; "))
	}
	return fmt.Errorf("no device %s is plugged in; see lsusb", v.numbered())
}

// accessError returns why a device could not be opened, with a remedy.
func (v *survey) accessError(f closed) error {
	if !errors.Is(f.Err, ErrAccess) {
		return fmt.Errorf("device %s at %s cannot be opened: %w", f.number, f.Place, f.Err)
	}
	return fmt.Errorf("device %s at %s: %w; add this line to /etc/udev/rules.d/70-tributary.rules, then plug the %s in again:\n    %s", f.number, f.Place, f.Err, v.Noun, f.number.udevRule())
}

// List returns the attached devices with the scheme's own numbers, including those that this
// user may not open. It does not claim them.
func (s *Scheme) List(bus Bus) ([]Card, error) {
	v, err := selector{s, s.Numbers, ""}.look(bus)
	if err != nil {
		return nil, err
	}
	defer v.close(nil)
	var cards []Card
	for _, c := range v.cards {
		cards = append(cards, c.Card)
	}
	for _, f := range v.closed {
		cards = append(cards, Card{Name: s.Name + ":" + f.number.String(), Err: v.accessError(f)})
	}
	return cards, nil
}

// Open opens the card whose name is the scheme's name and address. It takes over bus: the
// Conn's Close closes it, and Open does so after an error. It returns when ctx ends.
func (s *Scheme) Open(ctx context.Context, bus Bus, address string) (transport.Conn, error) {
	conn, err := s.open(ctx, bus, address)
	if err != nil {
		return nil, errors.Join(err, bus.Close())
	}
	if conn.card.Ident == nil {
		return conn, nil
	}
	return &identified{conn}, nil
}

func (s *Scheme) open(ctx context.Context, bus Bus, address string) (*conn, error) {
	selected, err := s.parse(address)
	if err != nil {
		return nil, err
	}
	v, err := selected.look(bus)
	if err != nil {
		return nil, err
	}
	card, err := v.choose()
	v.close(card)
	if err != nil {
		return nil, err
	}
	stream, err := s.Claim(ctx, card.device)
	if err != nil {
		_ = card.device.Close()
		if errors.Is(err, ErrClaimed) {
			return nil, &transport.TakenError{Reason: "another program has claimed " + card.Name}
		}
		return nil, fmt.Errorf("%s cannot be claimed: %w", card.Name, err)
	}
	return newConn(bus, card, stream), nil
}
