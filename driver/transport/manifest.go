package transport

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Manifest is what a folder that hwgen wrote says about its card, as far as a
// host needs it.
type Manifest struct {
	Path       string            // of manifest.json
	ConfigHash uint64            // as the card's register CONFIG_HASH holds it
	Shell      string            // "stream" has a byte stream
	Constants  map[string]uint64 // the registers whose value never changes, by name
}

// generator is what hwgen calls itself in a manifest.
const generator = "tributary/hwgen"

// ReadManifest reads the manifest of the card in folder dir.
func ReadManifest(dir string) (*Manifest, error) {
	m := &Manifest{Path: filepath.Join(dir, "manifest.json"), Constants: map[string]uint64{}}
	text, err := os.ReadFile(m.Path)
	if err != nil {
		return nil, fmt.Errorf("%q is no card's folder: %w (`hwgen -o DIR` writes one)", dir, err)
	}
	var file struct {
		Generator  string `json:"generator"`
		ConfigHash string `json:"config_hash"`
		Shell      string `json:"shell"`
		Registers  []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"registers"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; generate the card again", m.Path, err)
	}
	if file.Generator != generator {
		return nil, fmt.Errorf("%s is none of hwgen's; give a folder that hwgen wrote", m.Path)
	}
	m.Shell = file.Shell
	if m.ConfigHash, err = strconv.ParseUint(file.ConfigHash, 16, 64); err != nil {
		return nil, fmt.Errorf("%s: config_hash is %q and not 16 hex digits; generate the card again", m.Path, file.ConfigHash)
	}
	for _, r := range file.Registers {
		if r.Value == "" {
			continue
		}
		if m.Constants[r.Name], err = strconv.ParseUint(r.Value, 0, 64); err != nil {
			return nil, fmt.Errorf("%s: register %s has the value %q, which is no number; generate the card again", m.Path, r.Name, r.Value)
		}
	}
	return m, nil
}

// ExpectedHash returns the configuration hash that the folder's card must
// answer with, and where that is written. The driver asks any Conn that has
// this method.
func (m *Manifest) ExpectedHash() (hash uint64, from string) { return m.ConfigHash, m.Path }

// CheckLink refuses a card that has no byte stream to lead to it.
func (m *Manifest) CheckLink() error {
	if m.Shell == "none" {
		return fmt.Errorf("%s: a card with shell none has no byte stream; generate one with -shell stream", m.Path)
	}
	return nil
}
