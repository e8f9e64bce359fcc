package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tributary/driver/shell"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// cardFolder is a folder that hwgen wrote.
type cardFolder struct {
	*transport.Manifest
	dir string
}

func openFolder(dir string) (cardFolder, error) {
	m, err := transport.ReadManifest(dir)
	return cardFolder{m, dir}, err
}

// program returns the path of one of the programs that make -C DIR/sim builds.
func (c cardFolder) program(name string) string {
	return filepath.Join(c.dir, "sim", "build", name)
}

// built reports whether one of those programs exists.
func (c cardFolder) built(name string) bool {
	info, err := os.Stat(c.program(name))
	return err == nil && info.Mode().IsRegular()
}

// buildCommand returns the command that builds the card, or a target of its Makefile.
func (c cardFolder) buildCommand(target string) string {
	command := "make -C " + shell.Quote(c.dir+"/sim")
	if target != "" {
		command += " " + target
	}
	return command
}

// format returns the format of the card's contributions.
func (c cardFolder) format() wire.Format { return wire.Format(c.Constants["FORMAT"]) }

// describe describes the folder's card.
func (c cardFolder) describe() string { return describe(c.Constant) }

// describe describes a card by its registers, which register returns.
func describe(register func(addr uint32) uint64) string {
	format, sum := register(wire.RegFormat), register(wire.RegSum)
	saturates := ""
	if sum>>8&1 != 0 {
		saturates = " that saturates"
	}
	return fmt.Sprintf("%s, %s, %s, sum %s%s, shell %s", several(register(wire.RegLanes), "lane"), several(register(wire.RegPorts), "worker"),
		formats(wire.Format(format).String(), wire.Format(format>>8).String()), wire.Sum(sum), saturates, wire.Shell(register(wire.RegShell)))
}

// several returns a count with its noun: 1 lane, 2 lanes.
func several(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// folderDepth is the depth to which folders are searched for cards.
const folderDepth = 4

// findFolders returns the cards' folders below root. Like the go command, it skips folders that are
// hidden or called testdata.
func findFolders(root string) ([]cardFolder, error) {
	var found []cardFolder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // an unreadable folder has no card that could be started
		}
		if path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) || strings.Count(path, string(filepath.Separator)) > folderDepth {
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
