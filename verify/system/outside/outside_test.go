// Package outside tests that a program outside the repository can import the library,
// by the steps of README.md.
package outside

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "tributary/driver" // the program imports it, so a change of it reruns this test
)

const root = "../../.." // of the repository, from this folder

// TestProgramOutside follows the page: it saves the program in an empty folder and runs
// the four commands. They get everything from the module cache, so nothing of the page depends on
// the network. `go mod tidy` also looks at the tests of other modules, and at what those import.
func TestProgramOutside(t *testing.T) {
	page := readPage(t)
	repository, err := filepath.Abs(root)
	require.NoError(t, err)
	download := exec.Command("go", "mod", "download", "all")
	download.Dir = repository
	out, err := download.CombinedOutput()
	require.NoError(t, err, "%s", out)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program(t, page)), 0o666))

	var printed string
	for _, command := range commands(t, page) {
		run := exec.Command("bash", "-c", command)
		run.Dir = folder
		run.Env = append(os.Environ(), "TRIBUTARY="+repository, "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOSUMDB=off")
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s:\n%s", command, out)
		printed = string(out)
	}
	assert.Equal(t, "[111 222]\n", printed)
}

// TestProgramIsTheExample: the page and the package documentation show the same lines.
func TestProgramIsTheExample(t *testing.T) {
	example, err := os.ReadFile(filepath.Join(root, "driver/example_test.go"))
	require.NoError(t, err)
	assert.Equal(t, body(t, string(example), "Example"), body(t, program(t, readPage(t)), "main"))
}

func readPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	return string(page)
}

// program returns the Go program of the page.
func program(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n").FindStringSubmatch(page)
	require.NotNil(t, found, "README.md shows no Go program")
	return found[1]
}

// commands returns the indented commands that the page shows below the program.
func commands(t *testing.T, page string) []string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^    go mod init(?:.*\n    )*.*$`).FindString(page)
	require.NotEmpty(t, found, "README.md shows no go mod init")
	var lines []string
	for line := range strings.SplitSeq(found, "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	require.Equal(t, "go run .", lines[len(lines)-1])
	return lines
}

// body prints the statements of a function, without comments.
func body(t *testing.T, source, name string) []string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, source, 0)
	require.NoError(t, err)
	function, ok := parsed.Scope.Lookup(name).Decl.(*ast.FuncDecl)
	require.True(t, ok, "%s is no function", name)
	var lines []string
	for _, statement := range function.Body.List {
		var text strings.Builder
		require.NoError(t, printer.Fprint(&text, files, statement))
		lines = append(lines, text.String())
	}
	return lines
}
