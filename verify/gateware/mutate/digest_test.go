package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const leafText = `// Adds two numbers.
module agg_x (
    input wire a,  // the first
    input wire b   // the second
);
  /* Two lines
     of it. */
  initial $display("a // b \" /* c */");
  wire \a//b = a /* one bit */ & b;
endmodule
`

// TestDigestIgnoresComments: a record outlives a rewritten comment.
func TestDigestIgnoresComments(t *testing.T) {
	for _, change := range [][2]string{
		{"// Adds two numbers.", "// Returns the sum."},
		{"// Adds two numbers.", ""},
		{"  // the first", ""},
		{"// the second", "  // \"b\""},
		{"of it. */", "*/"},
		{"one bit", "a wire."},
	} {
		changed := strings.Replace(leafText, change[0], change[1], 1)
		if changed == leafText {
			t.Fatalf("%q is not in the text", change[0])
		}
		if digest(codeOf([]byte(changed))) != digest(codeOf([]byte(leafText))) {
			t.Errorf("%q for %q changes the digest", change[1], change[0])
		}
	}
}

// TestDigestCoversCode: a record becomes invalid if a token, line or column of code changes, or a
// string that looks like a comment.
func TestDigestCoversCode(t *testing.T) {
	for _, change := range [][2]string{
		{"& b", "| b"},
		{"// Adds two numbers.\n", ""},
		{"// Adds two numbers.\n", "// Adds two\n// numbers.\n"},
		{"  wire", "   wire"},
		{"/* one bit */", "/* two bits */"},
		{"\n     of it. */", " of it. */"},
		{"// b", "// c"},
		{"/* c */", "/* d */"},
		{"a//b", "a//c"},
	} {
		changed := strings.Replace(leafText, change[0], change[1], 1)
		if changed == leafText {
			t.Fatalf("%q is not in the text", change[0])
		}
		if digest(codeOf([]byte(changed))) == digest(codeOf([]byte(leafText))) {
			t.Errorf("%q for %q keeps the digest", change[1], change[0])
		}
	}
}

// TestDigestOfProof: comments and folders of a .sby do not count; tasks and options do.
func TestDigestOfProof(t *testing.T) {
	const proof = "# Proves it.\n[options]\n  # deep enough\ndepth 9\n\n[files]\n../../rtl/sum/agg_x.v\n"
	of := func(from, to string) string { return digest(tasksOf([]byte(strings.Replace(proof, from, to, 1)))) }
	for _, kept := range [][2]string{
		{"Proves it", "Asserts a sum"}, {"# Proves it.\n", ""}, {"deep", "long"}, {"rtl/sum", "rtl/core"},
	} {
		if of(kept[0], kept[1]) != of("", "") {
			t.Errorf("%q for %q changes the digest", kept[1], kept[0])
		}
	}
	for _, counts := range [][2]string{{"9", "8"}, {"agg_x.v", "agg_y.v"}, {"depth", "# depth"}} {
		if of(counts[0], counts[1]) == of("", "") {
			t.Errorf("%q for %q keeps the digest", counts[1], counts[0])
		}
	}
}

// TestDigestsOfChecks: the digest of the checks covers the leaf and its proof.
func TestDigestsOfChecks(t *testing.T) {
	c := &campaign{root: t.TempDir()}
	l := campaignLeaves[slices.IndexFunc(campaignLeaves, func(l leaf) bool { return l.proof != "" })]
	whole := &campaign{root: root}
	text, err := whole.verilog(l.name)
	if err != nil {
		t.Fatal(err)
	}
	sby, err := os.ReadFile(filepath.Join(root, proofs, l.proof+".sby"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, text []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := filepath.Glob(filepath.Join(root, "rtl", "*", l.name+".v"))
	if err != nil || len(file) != 1 {
		t.Fatalf("%s: %v, %v", l.name, file, err)
	}
	inside, err := filepath.Rel(root, file[0])
	if err != nil {
		t.Fatal(err)
	}
	leafFile, proofFile := filepath.Join(c.root, inside), filepath.Join(c.root, proofs, l.proof+".sby")
	sums := func() [2]string {
		t.Helper()
		verilog, checks, err := c.digests(l)
		if err != nil {
			t.Fatal(err)
		}
		return [2]string{verilog, checks}
	}
	put(leafFile, text)
	put(proofFile, sby)
	first := sums()
	put(leafFile, append([]byte("// Of one line more\n"), text...))
	if s := sums(); s[0] == first[0] || s[1] == first[1] {
		t.Error("a line more in the leaf keeps a digest")
	}
	put(leafFile, text)
	put(proofFile, append(sby, "\n[options]\ndepth 1\n"...))
	if s := sums(); s[0] != first[0] || s[1] == first[1] {
		t.Error("an option of the proof must change the digest of the checks alone")
	}
}
