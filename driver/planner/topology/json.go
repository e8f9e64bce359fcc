package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Decode reads one JSON value, with numbers as they are written. known refuses members that the value's
// type does not have. Members that occur twice are refused, because readers differ in which one they take.
// If something is wrong, why tells what, and place where: a line and a column, or "".
func Decode(data []byte, known bool, to any) (place, why string) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if known {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(to); err != nil {
		return where(data, err), reason(err)
	}
	end := decoder.InputOffset()
	if _, err := decoder.Token(); err != io.EOF {
		return at(data, decoder.InputOffset()), "more text follows"
	}
	if offset, key := twice(data[:end]); key != "" {
		return at(data, offset), fmt.Sprintf("%q occurs twice in one object", key)
	}
	return "", ""
}

// twice finds the first member that an object has twice, in valid JSON. Without one, key is "".
func twice(data []byte) (offset int64, key string) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	type level struct {
		members map[string]bool // nil: an array
		value   bool            // a member's value is next
	}
	var open []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return 0, ""
		}
		if text, name := token.(string); name && len(open) > 0 {
			if in := &open[len(open)-1]; in.members != nil && !in.value {
				if in.members[text] {
					return decoder.InputOffset(), text
				}
				in.members[text], in.value = true, true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{members: map[string]bool{}})
			continue
		case json.Delim('['):
			open = append(open, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1].value = false
		}
	}
}

// where returns line and column of an error of package json, or "".
func where(data []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return at(data, syntax.Offset)
	case errors.As(err, &kind):
		return at(data, kind.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return at(data, int64(len(data)))
	}
	return ""
}

// at formats an offset as line and column.
func at(data []byte, offset int64) string {
	before := data[:min(int(offset), len(data))]
	line := bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line+1, max(column-1, 1))
}

// reason words an error of package json.
func reason(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Sprintf("it is of the kind %s instead of an object", kind.Value)
	case errors.As(err, &kind):
		return fmt.Sprintf("%q has a value of a wrong kind or size: %s", kind.Field, kind.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
