package main

// Errors of the libraries in the words of the command line.

import (
	"errors"
	"fmt"

	"tributary/driver"
	"tributary/driver/reduction"
)

// asFlags returns an error with options named as flags. What the command line can
// mend is a usageError.
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

// flagText is an error in other words.
type flagText struct {
	text string
	err  error
}

func (e flagText) Error() string { return e.text }
func (e flagText) Unwrap() error { return e.err }

// flagOf returns the flag of an option. What is reduced here are files.
func flagOf(option string) string {
	switch option {
	case "files":
		return "files"
	case "out":
		return "-o"
	}
	return "-" + option
}

// flagPath names the flag that gave a path, with which the text of err begins.
func flagPath(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", flag, err)
}

// flagged says what is wrong with a job by the flag that it was given with.
func flagged(err *driver.InputError) error {
	flag, ok := map[string]string{
		"chunk": "-chunk", "window": "-window", "ports": "-ports",
		"deadline": "-deadline", "partial sums": "-partial", "carry on": "-carry-on",
	}[err.What]
	if !ok {
		return err // the number of workers, which for some commands is that of files
	}
	return fmt.Errorf("%s: %s", flag, err.Why)
}

// checkRecord refuses a link log in the place of an input or of the output.
func checkRecord(path, out string, inputs []string) error {
	if path == "" {
		return nil
	}
	if other := reduction.SameFile(path, append([]string{out}, inputs...)); other != "" {
		return usagef("-record %s: that is %s; give the link log a file of its own", path, other)
	}
	return nil
}
