package bulk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// Card is one that is plugged in.
type Card struct {
	Name  string // as driver.Open takes it
	Ident []byte // its identification block; nil when the card cannot be opened
	Err   error  // why not
}

// Register returns what a register of the identification block holds.
func (c *Card) Register(addr uint32) uint64 { return binary.LittleEndian.Uint64(c.Ident[addr:]) }

// candidate is a device that can be opened and is a card.
type candidate struct {
	Card
	device Device
	serial string
}

// survey is what is plugged in under one vendor and product.
type survey struct {
	selector
	cards   []candidate
	closed  []Found  // that could not be opened
	strange []string // what is no card, and why
}

// look opens what is plugged in. Devices that are no cards are closed again.
func (s selector) look(bus Bus) (*survey, error) {
	found, err := bus.Devices(s.vendor, s.product)
	if err != nil {
		return nil, err
	}
	v := &survey{selector: s}
	for _, f := range found {
		if f.Device == nil {
			v.closed = append(v.closed, f)
			continue
		}
		c, err := s.ask(f.Device)
		if err != nil {
			v.strange = append(v.strange, fmt.Sprintf("%s: %s", f.Place, err))
			_ = f.Device.Close()
			continue
		}
		v.cards = append(v.cards, c)
	}
	return v, nil
}

// ask asks a device what it is; it is an error if that is no card.
func (s selector) ask(d Device) (candidate, error) {
	block := make([]byte, wire.USBIdentBytes)
	n, err := d.Identify(block)
	switch {
	case errors.Is(err, ErrStalled):
		return candidate{}, errors.New("it does not know a card's request")
	case err != nil:
		return candidate{}, err
	case n < len(block) || binary.LittleEndian.Uint64(block) != wire.Magic:
		return candidate{}, errors.New("its identification is not a card's")
	}
	serial, err := d.Serial()
	if err != nil {
		return candidate{}, fmt.Errorf("its serial number cannot be read: %w", err)
	}
	return candidate{Card{Name: s.name(serial), Ident: block}, d, serial}, nil
}

// close closes all cards but one, which may be nil.
func (v *survey) close(but *candidate) {
	for i := range v.cards {
		if &v.cards[i] != but {
			_ = v.cards[i].device.Close()
		}
	}
}

// choose returns the one card that the selector means.
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
	return nil, fmt.Errorf("%d cards are plugged in; say which: %s", len(fitting), v.names())
}

// names lists the names of the cards.
func (v *survey) names() string {
	var names []string
	for _, c := range v.cards {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// none says why no card fits.
func (v *survey) none() error {
	switch {
	case len(v.closed) > 0:
		return v.accessError(v.closed[0])
	case len(v.cards) > 0:
		return fmt.Errorf("no card with serial number %s is plugged in; there is %s", v.serial, v.names())
	case len(v.strange) > 0:
		return fmt.Errorf("device %04x:%04x is no Tributary card (%s)", v.vendor, v.product, strings.Join(v.strange, "; "))
	}
	return fmt.Errorf("no device %04x:%04x is plugged in; see lsusb", v.vendor, v.product)
}

// accessError says why a device could not be opened, and what to do.
func (v *survey) accessError(f Found) error {
	if !errors.Is(f.Err, ErrAccess) {
		return fmt.Errorf("device %04x:%04x at %s cannot be opened: %w", v.vendor, v.product, f.Place, f.Err)
	}
	return fmt.Errorf("device %04x:%04x at %s: %w; put this line into /etc/udev/rules.d/70-tributary.rules, then plug the card in again:\n    %s", v.vendor, v.product, f.Place, f.Err, v.udevRule())
}

// List returns the cards that are plugged in, with the numbers of the project's own;
// also those that this user may not open. It does not claim them.
func List(bus Bus) ([]Card, error) {
	s, err := parse("")
	if err != nil {
		return nil, err
	}
	v, err := s.look(bus)
	if err != nil {
		return nil, err
	}
	defer v.close(nil)
	var cards []Card
	for _, c := range v.cards {
		cards = append(cards, c.Card)
	}
	for _, f := range v.closed {
		cards = append(cards, Card{Name: fmt.Sprintf("usb:%04x:%04x", s.vendor, s.product), Err: v.accessError(f)})
	}
	return cards, nil
}

// Open opens the card whose name is "usb:" and address. The bus is the Conn's from then on,
// and closed with it, or when there is an error.
func Open(bus Bus, address string) (transport.Conn, error) {
	conn, err := open(bus, address)
	if err != nil {
		return nil, errors.Join(err, bus.Close())
	}
	return conn, nil
}

func open(bus Bus, address string) (*conn, error) {
	s, err := parse(address)
	if err != nil {
		return nil, err
	}
	v, err := s.look(bus)
	if err != nil {
		return nil, err
	}
	card, err := v.choose()
	v.close(card)
	if err != nil {
		return nil, err
	}
	stream, err := card.device.Claim()
	if err != nil {
		_ = card.device.Close()
		if errors.Is(err, ErrClaimed) {
			return nil, &transport.TakenError{Reason: "another program has claimed " + card.Name}
		}
		return nil, fmt.Errorf("%s cannot be claimed: %w", card.Name, err)
	}
	return newConn(bus, card, stream), nil
}
