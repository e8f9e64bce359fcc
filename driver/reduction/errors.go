package reduction

import (
	"fmt"
	"os"
	"strings"

	"tributary/driver"
	"tributary/driver/npy"
	"tributary/driver/wire"
)

// words is an error's text. It may name options, each as ${option}, and the caller's noun for
// arrays, as ${files}.
type words struct {
	text string
	args []any
	err  error // the cause, or nil
}

func say(text string, args ...any) words { return words{text: text, args: args} }

// Text returns the error's text. name returns the caller's name of an option, such as "-carry-on"
// for "carry-on"; for "files", it returns the caller's noun, such as "arrays" for a caller without
// files.
func (w words) Text(name func(option string) string) string {
	return fmt.Sprintf(os.Expand(w.text, name), w.args...)
}

// Error uses the options' own names.
func (w words) Error() string {
	return w.Text(func(option string) string {
		if option == "files" {
			return "arrays"
		}
		return option
	})
}

// Unwrap returns the cause, or nil.
func (w words) Unwrap() error { return w.err }

// OptionError reports options that are invalid for all arrays and cards.
type OptionError struct {
	Option string // "op", "carry-on", "ports", …; "out" for the name of an output
	words
}

// badOption refuses an option's value; text begins with the value.
func badOption(option, text string, args ...any) error {
	return &OptionError{option, say("${"+option+"} "+text, args...)}
}

// wrongOption refuses an option, whatever its value.
func wrongOption(option, text string, args ...any) error {
	return &OptionError{option, say("${"+option+"}: "+text, args...)}
}

// FormatError reports arrays whose type does not match the requested format, or does not determine
// a format.
type FormatError struct {
	Type  npy.Type
	Asked wire.Format // 0: none
	words
}

// CardError reports a card that cannot sum the given arrays. Nothing was sent.
type CardError struct {
	Card   driver.Info
	Format wire.Format // of the arrays
	words
}

// ArraysError reports workers' arrays that cannot be read, or do not match.
type ArraysError struct {
	Problems []ArrayProblem // at least one
	Total    int            // workers
	files    bool           // whether the arrays came from files
}

// ArrayProblem is the defect of one worker's arrays.
type ArrayProblem struct {
	Worker int
	Name   string // of its arrays
	Err    error
}

func (p ArrayProblem) String() string { return fmt.Sprintf("%s: %v", p.Name, p.Err) }

func (e *ArraysError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].String()
	}
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	what := "workers' arrays"
	if e.files {
		what = "files"
	}
	return fmt.Sprintf("%d of the %d %s cannot be used:\n  %s", len(lines), e.Total, what, strings.Join(lines, "\n  "))
}

// Unwrap returns the errors of all workers.
func (e *ArraysError) Unwrap() []error {
	all := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.Err
	}
	return all
}

// OutputError reports a path where no file can be written.
type OutputError struct {
	Path string
	words
}

// NonfiniteError reports, with Options.Quantize, an element that has no integer. Nothing was sent.
type NonfiniteError struct {
	Worker  int
	Element int // counted through all arrays of the worker
	Value   float64
	words
}

// ExceptionsError reports, with Options.FailNonfinite, a NaN, an infinity or an overflow.
type ExceptionsError struct {
	Exceptions Exceptions
	words
}

// VerifyError reports, with Options.Verify, that the card's sum differs from the model's, or that
// the model could not sum.
type VerifyError struct {
	Wrong, Elements int    // numbers of wrong elements and of all elements; 0 if the model failed
	First           int    // the first wrong element
	Have, Want      uint32 // its encodings
	words
}
