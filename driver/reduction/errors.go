package reduction

import (
	"fmt"
	"os"
	"strings"

	"tributary/driver"
	"tributary/driver/npy"
	"tributary/driver/wire"
)

// words is the text of an error that may name options, each as ${option}, and what the
// caller calls arrays, as ${files}.
type words struct {
	text string
	args []any
	err  error // the cause, or nil
}

func say(text string, args ...any) words { return words{text: text, args: args} }

// Text returns the error's text; name returns a caller's name of an option, such as
// "-carry-on" of "carry-on", and of "files": what a caller without files calls "arrays".
func (w words) Text(name func(option string) string) string {
	return fmt.Sprintf(os.Expand(w.text, name), w.args...)
}

// Error names options as they are.
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

// OptionError is answered for options that no arrays and no card can make right.
type OptionError struct {
	Option string // "op", "carry-on", "ports", …; "out" for the name of an output
	words
}

// badOption refuses an option's value, with which text begins.
func badOption(option, text string, args ...any) error {
	return &OptionError{option, say("${"+option+"} "+text, args...)}
}

// wrongOption refuses an option, whatever its value.
func wrongOption(option, text string, args ...any) error {
	return &OptionError{option, say("${"+option+"}: "+text, args...)}
}

// FormatError is answered for arrays whose type is not that of the format asked for,
// or does not determine a format.
type FormatError struct {
	Type  npy.Type
	Asked wire.Format // 0: none
	words
}

// CardError is answered for a card that does not sum what it is to be sent. Nothing
// was sent.
type CardError struct {
	Card   driver.Info
	Format wire.Format // of the arrays
	words
}

// ArraysError is answered for workers' arrays that cannot be read, or do not go
// together.
type ArraysError struct {
	Problems []ArrayProblem // at least one
	Total    int            // workers
	files    bool           // whose arrays came from files
}

// ArrayProblem is what is wrong with one worker's arrays.
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

// OutputError is answered for a path where no file can be written.
type OutputError struct {
	Path string
	words
}

// NonfiniteError is answered for an element that no integer can stand for, with
// Options.Quantize. Nothing was sent.
type NonfiniteError struct {
	Worker  int
	Element int // counted through all arrays of the worker
	Value   float64
	words
}

// ExceptionsError is answered with Options.FailNonfinite when there was a NaN, an
// infinity or an overflow.
type ExceptionsError struct {
	Exceptions Exceptions
	words
}

// VerifyError is answered with Options.Verify when the card's sum is not the model's,
// or the model could not sum.
type VerifyError struct {
	Wrong, Elements int    // how many elements are wrong, of how many; 0 when the model failed
	First           int    // of the wrong ones
	Have, Want      uint32 // its encodings
	words
}
