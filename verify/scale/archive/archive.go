// Package archive has what the simulations of verify/scale share: a configuration with cards, and the
// results of it, which are kept in a folder with a page and a figure.
package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Card has the figures of a card's manifest. A test compares them with hwgen's (archivetest.Cards).
type Card struct {
	Command       string `json:"command"`
	LatencyCycles int    `json:"latency_cycles"` // first beat in, first beat out
	ChunkCycles   int    `json:"chunk_cycles"`
}

// Parse reads a configuration into a structure. Keys that it does not have are errors.
func Parse(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the configuration is no valid JSON of this program: %w", err)
	}
	return nil
}

// Digest names a configuration in the results of it.
func Digest(configuration []byte) string { return fmt.Sprintf("%x", sha256.Sum256(configuration)) }

// Write puts results into DIR/results.json, and their page and figure beside them.
func Write(dir string, results any, page, picture string) error {
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "results.json"), append(text, '\n'), 0o666), Draw(dir, page, picture))
}

// Draw writes a page and a figure into RESULT.md and result.svg of a folder.
func Draw(dir, page, picture string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "RESULT.md"), []byte(page), 0o666),
		os.WriteFile(filepath.Join(dir, "result.svg"), []byte(picture), 0o666),
	)
}
