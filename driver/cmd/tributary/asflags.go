package main

// Library errors, reworded for the command line.

import (
	"errors"
	"fmt"

	"tributary/driver"
	"tributary/driver/reduction"
)

// asFlags returns an error with its options named as flags. An error that another command line can
// avoid is a usageError.
func asFlags(err error) error {
	var option *reduction.OptionError
	var format *reduction.FormatError
	var card *reduction.CardError
	var output *reduction.OutputError
	var input *driver.InputError
	var named interface {
		error
		Text(func(option string) string) string
	}
	switch {
	case errors.As(err, &output):
		return flagPath("-o", err)
	case errors.As(err, &option), errors.As(err, &format), errors.As(err, &card):
		errors.As(err, &named)
		return usageError{flagText{named.Text(flagOf), err}}
	case errors.As(err, &named):
		return flagText{named.Text(flagOf), err}
	case errors.As(err, &input):
		return usageError{flagged(input)}
	}
	return err
}

// flagText is an error with another text.
type flagText struct {
	text string
	err  error
}

func (e flagText) Error() string { return e.text }
func (e flagText) Unwrap() error { return e.err }

// flagOf returns the flag of an option. Inputs here are always files.
func flagOf(option string) string {
	switch option {
	case "files":
		return "files"
	case "out":
		return "-o"
	}
	return "-" + option
}

// flagPath puts the flag that gave a path before err, whose text begins with the path.
func flagPath(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", flag, err)
}

// flagged names the flag of a job's invalid option.
func flagged(err *driver.InputError) error {
	flag, ok := map[string]string{
		"chunk": "-chunk", "window": "-window", "ports": "-ports",
		"deadline": "-deadline", "partial sums": "-partial", "carry on": "-carry-on",
		"ticket": "-join", "schedule": "-schedule", "trees": "-card", "tree": "-tree",
	}[err.What]
	if !ok {
		return err // the number of workers, which some commands derive from the files
	}
	return fmt.Errorf("%s: %s", flag, err.Why)
}

// checkRecord refuses a link log at the path of an input or of the output.
func checkRecord(path, out string, inputs []string) error {
	if path == "" {
		return nil
	}
	if other := reduction.SameFile(path, append([]string{out}, inputs...)); other != "" {
		return usagef("-record %s: it is the same file as %s; name another file for the link log", path, other)
	}
	return nil
}
