package transport

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"tributary/driver/wire"
)

// Manifest is the part of hwgen's manifest of a card that a host needs.
type Manifest struct {
	Path       string            // of manifest.json
	ConfigHash uint64            // the card's CONFIG_HASH
	Shell      string            // "stream" has a byte stream
	Prefix     string            // of the names of its modules
	Ethernet   int               // Ethernet ports; 0 without a network
	Constants  map[string]uint64 // the constant registers, by name
}

// ReadManifest reads the manifest of the card in folder dir. It checks that this program
// supports it and that it is consistent.
func ReadManifest(dir string) (*Manifest, error) {
	m := &Manifest{Path: filepath.Join(dir, "manifest.json"), Constants: map[string]uint64{}}
	text, err := os.ReadFile(m.Path)
	if err != nil {
		return nil, fmt.Errorf("%q is not a card's folder: %w (`hwgen -o DIR` writes one)", dir, err)
	}
	var file struct {
		Schema     int    `json:"schema"`
		Generator  string `json:"generator"`
		Protocol   int    `json:"protocol"`
		ConfigHash string `json:"config_hash"`
		Shell      string `json:"shell"`
		Prefix     string `json:"prefix"`
		Ethernet   int    `json:"ethernet"`
		Registers  []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"registers"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; generate the card again", m.Path, err)
	}
	if file.Generator != wire.ManifestGenerator {
		return nil, fmt.Errorf("%s is not a manifest of hwgen; name a folder that hwgen wrote", m.Path)
	}
	if file.Schema != wire.ManifestSchema {
		return nil, fmt.Errorf("%s is a manifest of schema %d, this program reads schema %d; generate the card again with the hwgen of this program", m.Path, file.Schema, wire.ManifestSchema)
	}
	if file.Protocol != wire.Version {
		remedy := "generate the card again with the hwgen of this program"
		if file.Protocol > wire.Version {
			remedy = "use a newer program"
		}
		return nil, fmt.Errorf("%s: the card speaks protocol version %d, this program version %d; %s", m.Path, file.Protocol, wire.Version, remedy)
	}
	m.Shell, m.Prefix, m.Ethernet = file.Shell, file.Prefix, file.Ethernet
	if m.ConfigHash, err = strconv.ParseUint(file.ConfigHash, 16, 64); err != nil {
		return nil, fmt.Errorf("%s: config_hash is %q, not 16 hex digits; generate the card again", m.Path, file.ConfigHash)
	}
	for _, r := range file.Registers {
		if r.Value == "" {
			continue
		}
		if m.Constants[r.Name], err = strconv.ParseUint(r.Value, 0, 64); err != nil {
			return nil, fmt.Errorf("%s: register %s has the value %q, which is not a number; generate the card again", m.Path, r.Name, r.Value)
		}
	}
	return m, m.check()
}

// check rejects a manifest whose identification block is incomplete or does not match its
// configuration hash.
func (m *Manifest) check() error {
	for _, r := range wire.Registers {
		if _, ok := m.Constants[r.Name]; r.Ident && !ok {
			return fmt.Errorf("%s lacks the value of register %s; generate the card again", m.Path, r.Name)
		}
	}
	if hash := wire.ConfigHash(m.Constant); hash != m.ConfigHash {
		return fmt.Errorf("%s: config_hash is %016x, but the registers there give %016x: the file was changed; generate the card again", m.Path, m.ConfigHash, hash)
	}
	if err := wire.CheckIdent(m.Constant); err != nil {
		return fmt.Errorf("%s: %w; generate the card again with the hwgen of this program", m.Path, err)
	}
	return nil
}

// Constant returns the value of the constant register at an address, or 0 for another register.
func (m *Manifest) Constant(addr uint32) uint64 {
	for _, r := range wire.Registers {
		if r.Addr == addr {
			return m.Constants[r.Name]
		}
	}
	return 0
}

// ExpectedHash returns the configuration hash that the folder's card must have, and the file
// with that hash. The driver calls it on any Conn that has this method.
func (m *Manifest) ExpectedHash() (hash uint64, from string) { return m.ConfigHash, m.Path }

// CheckLink rejects a card without a byte stream.
func (m *Manifest) CheckLink() error {
	if m.Shell == "none" {
		return fmt.Errorf("%s: a card with shell none has no byte stream; generate one with -shell stream", m.Path)
	}
	return nil
}
