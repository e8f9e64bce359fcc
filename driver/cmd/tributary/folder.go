package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tributary/driver"
)

// cardFolder is a folder that hwgen wrote, with the part of its manifest that
// this command shows.
type cardFolder struct {
	Dir       string `json:"-"`
	Built     bool   `json:"-"` // its virtual card can be started
	Generator string `json:"generator"`
	Lanes     int    `json:"lanes"`
	Workers   int    `json:"workers"`
	Format    string `json:"format"`
	Sum       string `json:"sum"`
	Shell     string `json:"shell"`
}

const generator = "tributary/hwgen"

// openFolder reads what card a folder holds. The error is a NoCardError.
func openFolder(dir string) (cardFolder, error) {
	no := func(reason string) (cardFolder, error) {
		return cardFolder{}, &driver.NoCardError{Name: "sim:" + dir, Reason: reason}
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return no(fmt.Sprintf("%s is no card's folder: it has no manifest.json (hwgen -o %s writes one)", dir, dir))
	}
	c := cardFolder{Dir: dir}
	if json.Unmarshal(text, &c) != nil || c.Generator != generator {
		return no(filepath.Join(dir, "manifest.json") + " is none of hwgen's")
	}
	info, err := os.Stat(c.program("card"))
	c.Built = err == nil && info.Mode().IsRegular()
	return c, nil
}

// program returns the path of one of the programs that make -C DIR/sim builds.
func (c cardFolder) program(name string) string {
	return filepath.Join(c.Dir, "sim", "build", name)
}

// folderDepth is how deep below a folder its cards are searched.
const folderDepth = 4

// findFolders returns the cards' folders below root.
func findFolders(root string) ([]cardFolder, error) {
	var found []cardFolder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // what cannot be read holds no card that could be started
		}
		if path != root && strings.HasPrefix(d.Name(), ".") || strings.Count(path, string(filepath.Separator)) > folderDepth {
			return filepath.SkipDir
		}
		if c, err := openFolder(path); err == nil {
			found = append(found, c)
			return filepath.SkipDir
		}
		return nil
	})
	return found, err
}
