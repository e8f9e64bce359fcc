package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// sleepers are the test functions that may sleep outside of a synctest bubble, with the reason.
// No test may sleep until something "must" have happened: on a busy machine it may not have.
var sleepers = map[string]string{
	"driver/collective/faults_test.go Read":             "takes its time in bubbles alone",
	"driver/collective/faults_test.go SetWriteDeadline": "takes its time in bubbles alone",
	"driver/collective/helpers_test.go noLeak":          "looks again and again until no goroutine is left",
	"driver/congested_test.go ReadPackets":              "a link of tests in bubbles alone",
	"driver/daemon/limits_test.go awaitReadyz":          "asks again and again until it has the answer",
	"driver/daemon/limits_test.go awaitMetricIs":        "asks again and again until it has the answer",
	"driver/daemon/rogue_test.go beside":                "looks again and again until goroutines have ended",
	"driver/carry_test.go init":                         "opens cards for tests in bubbles alone",
	"driver/carry_test.go Read":                         "a link of tests in bubbles alone",
	"driver/pending_test.go Read":                       "a link of tests in bubbles alone",
	"driver/peer_test.go babble":                        "is called in bubbles alone",
	"driver/deadlines_test.go stallAtRandom":            "is called in bubbles alone",
	"driver/roce/fabric_test.go await":                  "is called in bubbles alone",
	"driver/roce/fabric_test.go run":                    "runs in bubbles alone",
	"driver/selftest/selftest_test.go Write":            "a link of tests in bubbles alone",
	"driver/transport/bridge/bridge_test.go Read":       "babbles in a bubble alone",
	"driver/transport/ftdi/ftdi_test.go Read":           "babbles in a bubble alone",
	"driver/transport/transport_test.go traceEnd":       "another process, which takes its time; its host waits for its end however long",
	"verify/system/usb/kernel/kernel_test.go steps":     "asks a machine in QEMU for minutes",
	"verify/system/usb/kernel/kernel_test.go fails":     "asks a machine in QEMU for minutes",
}

// waits are the calls that wait for a time, by package and function.
var waits = map[string]bool{
	"time.Sleep": true, "time.After": true, "time.Tick": true,
	"require.Eventually": true, "assert.Eventually": true, "require.Never": true, "assert.Never": true,
}

// TestNoTestWaitsForATime: in the tests of the driver and of package faults, time passes only in
// the bubbles of package synctest.
func TestNoTestWaitsForATime(t *testing.T) {
	used := map[string]bool{}
	for _, folder := range []string{"driver", "verify/system/faults", "verify/system/shared", "verify/system/soak", "verify/system/usb"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(root, path)
			for _, function := range file.Decls {
				for _, wait := range waitsOutsideOfBubbles(function) {
					where := name + " " + nameOf(function)
					if used[where] = true; sleepers[where] == "" {
						t.Errorf("%s waits by %s: run it in a bubble (package synctest), or wait for what is to happen", where, wait)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for where := range sleepers {
		if !used[where] {
			t.Errorf("%s does not wait any more: take it out of the table", where)
		}
	}
}

// nameOf returns the name of a function or of the first variable of a declaration.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return ""
}

// waitsOutsideOfBubbles returns the calls in n that wait for a time, except in arguments of
// synctest.Test or bubble.
func waitsOutsideOfBubbles(n ast.Node) (found []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch name := callee(call); {
		case name == "synctest.Test" || name == "bubble":
			return false
		case waits[name]:
			found = append(found, name)
		}
		return true
	})
	return found
}

// callee returns the name of the called function: f or package.f.
func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}
