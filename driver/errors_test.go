package driver

// How errors name their place.

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"tributary/driver/wire"
)

// The place of the errors in these tests.
const (
	here    = "unix:here.sock"
	hereJob = ", job 3"
)

// cause is the innermost error.
var cause = fs.ErrPermission

// every returns an error of each exported type with the place above, around err if the type can
// wrap one.
func every(err error) map[string]error {
	died := &DiedError{Card: here, Err: err}
	return map[string]error{
		"NoCardError":       &NoCardError{Name: here, Reason: "it is not there", Err: err},
		"BusyError":         &BusyError{Name: here, Reason: "another host owns it"},
		"VersionError":      &VersionError{Name: here, Got: 2, Want: 1},
		"HashError":         &HashError{Name: here, Got: 2, Want: 1, From: "its manifest"},
		"InputError":        &InputError{What: "window", Why: "3 chunks"},
		"RefusedError":      &RefusedError{Card: here, What: "chunk 7 of rank 2", Code: wire.CodeLate, job: hereJob},
		"FullError":         &FullError{Card: here, Numbers: 4, Slots: 8, Window: 2, Jobs: []JobState{{Number: 1, Slots: 8}}, Err: err},
		"MissingError":      &MissingError{Card: here, VID: 7, Ranks: []int{1, 2}, Waited: time.Second, Err: context.DeadlineExceeded, job: hereJob},
		"TimeoutError":      &TimeoutError{Card: here, What: "read LANES", Waited: time.Second, Err: context.DeadlineExceeded, job: hereJob},
		"EndedError":        &EndedError{Card: here, Epoch: 5, Err: err, job: hereJob},
		"StoppedError":      &StoppedError{Card: here, What: "read LANES", Err: context.Canceled, job: hereJob},
		"GivenUpError":      &GivenUpError{Card: here, Call: "call of rank 2", Err: err, job: hereJob},
		"EvictedError":      &EvictedError{Card: here, Rank: 2, VID: 7, job: hereJob},
		"DiedError":         died,
		"LostError":         &LostError{Card: here, Cause: &DiedError{Card: here, Err: io.EOF}, Waited: time.Second, Err: err},
		"OtherCardError":    &OtherCardError{Name: here, Got: 2, Want: 1},
		"JoinError":         &JoinError{Card: here, Text: "no such job"},
		"NotStartedError":   &NotStartedError{Card: here, Missing: []int{1}, Text: "rank 1 had not joined after 1s"},
		"MemberLostError":   &MemberLostError{Card: here, Ranks: []int{1, 2}},
		"MemberFailedError": &MemberFailedError{Card: here, Ranks: []int{1, 2}, Text: "ranks [1 2] came later than 1s after the others"},
		"CallsDifferError":  &CallsDifferError{Card: here, Ranks: []int{1, 2}, Text: "call 7: rank 1 asks for the sum of 16 elements of fp32, rank 2 for the mean of 16 elements of fp32"},
		"ResultLostError":   &ResultLostError{Card: here, VID: 7},
		"failure":           &failure{at: place{card: here}, what: "no random epoch", err: err},
	}
}

// TestEveryErrorIsWalked checks that every() has all exported error types of this package.
func TestEveryErrorIsWalked(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := every(cause)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Error" || f.Recv == nil {
			continue
		}
		name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
		if e := all[name]; e == nil || reflect.TypeOf(e).Elem().Name() != name {
			t.Errorf("%s is not among them", name)
		}
	}
}

// TestErrorsNameTheirPlaceOnce checks nested errors of one card and job. The text must name
// both at most once, and the card at least once.
func TestErrorsNameTheirPlaceOnce(t *testing.T) {
	check := func(e error, how string) {
		t.Helper()
		text := e.Error()
		least := 1
		if _, ok := e.(*InputError); ok {
			least = 0
		}
		if n := strings.Count(text, here); n < least || n > 1 {
			t.Errorf("%s names its card %d times: %s", how, n, text)
		}
		if n := strings.Count(text, strings.TrimPrefix(hereJob, ", ")); n > 1 {
			t.Errorf("%s names its job %d times: %s", how, n, text)
		}
	}
	for inner, in := range every(cause) {
		check(in, inner)
		for middle, mid := range every(in) {
			check(mid, middle+" of "+inner)
			for outer, out := range every(mid) {
				check(out, outer+" of "+middle+" of "+inner)
			}
		}
	}
}

// TestVersionErrorNamesItsRemedy checks both remedies: the older side is the one to replace.
func TestVersionErrorNamesItsRemedy(t *testing.T) {
	for want, err := range map[string]*VersionError{
		"speaks protocol version 1, this driver version 2; generate the card again with the hwgen of this driver": {Name: here, Got: 1, Want: 2},
		"speaks protocol version 3, this driver version 2; use a newer driver":                                    {Name: here, Got: 3, Want: 2},
	} {
		if got := err.Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%q does not end with %q", got, want)
		}
	}
}

// TestErrorsOfOtherPlacesNameThem checks that nested errors of another card or job name it.
func TestErrorsOfOtherPlacesNameThem(t *testing.T) {
	ended := func(err error) string {
		return (&EndedError{Card: here, Epoch: 5, Err: err, job: hereJob}).Error()
	}
	for want, err := range map[string]error{
		"has ended: card unix:there disconnected: EOF":  &DiedError{Card: "unix:there", Err: io.EOF},
		"has ended: it disconnected: EOF":               &DiedError{Card: here, Err: io.EOF},
		"has ended: job 4: no reply for 1s to a":        &TimeoutError{Card: here, What: "a", Waited: time.Second, job: ", job 4"},
		"has ended: it refused chunk 7: late: The VID ": &RefusedError{Card: here, What: "chunk 7", Code: wire.CodeLate, job: hereJob},
	} {
		if got := ended(err); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}
