package main

// Digests that bind a record to its source code.

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// digests returns the SHA-256 of a leaf's Verilog, alone and together with its proof. A record is
// valid while they stay the same. They cover code with its lines and columns, which name the
// mutants, but not comments. They do not cover benches: a bench may grow, and -again shows the
// mutants that it newly detects.
func (c *campaign) digests(l leaf) (verilog, checks string, err error) {
	text, err := c.verilog(l.name)
	if err != nil {
		return "", "", err
	}
	checked := codeOf(text)
	verilog = digest(checked)
	if l.proof != "" {
		proof, err := os.ReadFile(filepath.Join(c.root, proofs, l.proof+".sby"))
		if err != nil {
			return "", "", err
		}
		checked = bytes.Join([][]byte{checked, tasksOf(proof)}, []byte{0})
	}
	return verilog, digest(checked), nil
}

// digest returns the SHA-256 in hexadecimal.
func digest(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

var (
	// token matches what a comment's opening can be part of without opening one, and comments.
	token = regexp.MustCompile(`"(?:\\.|[^"\\\n])*"|\\\S+|//[^\n]*|(?s:/\*.*?\*/)`)

	printed  = regexp.MustCompile(`[^\n]`)
	trailing = regexp.MustCompile(`(?m)[ \t]+$`)
)

// codeOf returns Verilog without its comments. Blanks replace a comment, so the code keeps its
// lines and columns. Blanks at the end of a line are removed.
func codeOf(verilog []byte) []byte {
	blanked := token.ReplaceAllFunc(verilog, func(t []byte) []byte {
		if t[0] != '/' {
			return t
		}
		return printed.ReplaceAll(t, []byte(" "))
	})
	return trailing.ReplaceAll(blanked, nil)
}

var (
	remark = regexp.MustCompile(`(?m)^[ \t]*#.*\n?`)

	// leading matches the folders of the files in a .sby. A leaf may move without a new record.
	leading = regexp.MustCompile(`(?m)(?:\.\./)+(?:\w+/)*`)
)

// tasksOf returns a proof's .sby without its comments and without the folders of its files.
func tasksOf(sby []byte) []byte {
	return leading.ReplaceAll(remark.ReplaceAll(sby, nil), nil)
}
