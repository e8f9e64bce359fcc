package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// generate runs hwgen to write a card to the folder called name, and returns the folder. If hwgen
// would write the same files, generate keeps the folder and the programs built in it.
func generate(ctx context.Context, name string, flags ...string) (string, error) {
	dir := filepath.Join(folder, name)
	fresh := dir + ".new"
	defer os.RemoveAll(fresh)
	if _, err := output(ctx, "bin/hwgen", append(flags, "-o", fresh)...); err != nil {
		return "", err
	}
	if same, err := holds(dir, fresh); same || err != nil {
		return dir, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Rename(fresh, dir)
}

// holds reports whether dir has every file of fresh, with the same bytes.
func holds(dir, fresh string) (bool, error) {
	same := true
	err := fs.WalkDir(os.DirFS(fresh), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := os.ReadFile(filepath.Join(fresh, path))
		if err != nil {
			return err
		}
		have, err := os.ReadFile(filepath.Join(dir, path))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(have, want) {
			same = false
			return fs.SkipAll
		}
		return err
	})
	return same, err
}

// compile builds a make target in the sim folder of a card.
func compile(ctx context.Context, dir, target string, variables ...string) error {
	progress("building %s of %s", target, dir)
	_, err := output(ctx, "make", append([]string{"-s", "-C", filepath.Join(dir, "sim"), target}, variables...)...)
	return err
}

// compileProgram builds a C++ program from the programs folder with the model of a card, and
// returns its path.
func compileProgram(ctx context.Context, dir, program string, variables ...string) (string, error) {
	here, err := filepath.Abs("verify/system/bench/programs")
	if err != nil {
		return "", err
	}
	rules := []string{"-f", "Makefile", "-f", filepath.Join(here, "programs.mk"), "BENCH=" + here}
	target := filepath.Join("build", program)
	return filepath.Join(dir, "sim", target), compile(ctx, dir, target, append(rules, variables...)...)
}

// output runs a program and returns its standard output. The error includes its standard error.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}
