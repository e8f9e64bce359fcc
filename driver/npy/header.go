package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The start of every file; see https://numpy.org/neps/nep-0001-npy-format.html.
const magic = "\x93NUMPY"

// maxHeader is the longest header that is accepted. NumPy's default limit is 10,000 bytes.
const maxHeader = 1 << 16

// errNotNumPy is the error for a file without NumPy's magic.
var errNotNumPy = errors.New("it is not a NumPy array file")

// fileHeader is the content of a file's header.
type fileHeader struct {
	element Type
	fortran bool
	shape   []int
}

// header returns the start of a file up to the data, padded to a multiple of
// 64 bytes as NumPy does.
func header(a Array) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", string(a.Type), FormatShape(a.Shape))
	const fixed = len(magic) + 2 + 2 // including version and length
	pad := 63 - (fixed+len(dict))%64
	dict += strings.Repeat(" ", pad) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	return append(b, dict...)
}

// readHeader reads the start of a file up to the data.
func readHeader(r io.Reader) (fileHeader, error) {
	dict, err := readDict(r)
	if err != nil {
		return fileHeader{}, err
	}
	values, err := parseDict(dict)
	if err != nil {
		return fileHeader{}, fmt.Errorf("its header is damaged: %w", err)
	}
	h := fileHeader{}
	switch descr := values["descr"].(type) {
	case string:
		if h.element = Type(descr); h.element.Size() == 0 {
			return fileHeader{}, unknownType(descr)
		}
	case nil:
		return fileHeader{}, errors.New("its header is damaged: no descr")
	default:
		return fileHeader{}, fmt.Errorf("it holds records; only plain arrays of %s are supported", typeList)
	}
	var ok bool
	if h.fortran, ok = values["fortran_order"].(bool); !ok {
		return fileHeader{}, errors.New("its header is damaged: no fortran_order")
	}
	dims, ok := values["shape"].([]any)
	if !ok {
		return fileHeader{}, errors.New("its header is damaged: no shape")
	}
	for _, d := range dims {
		n, ok := d.(int)
		if !ok {
			return fileHeader{}, errors.New("its header is damaged: the shape holds something other than numbers")
		}
		h.shape = append(h.shape, n)
	}
	return h, nil
}

// typeList is the list of supported types in messages.
const typeList = "float32, float16, int32, uint16 and uint8"

// unknownType returns the error for an unsupported type, with a remedy. ml_dtypes saves
// bfloat16 and fp8 as bytes without a type.
func unknownType(descr string) error {
	switch descr {
	case "|V2", "<V2":
		return fmt.Errorf("its type is '%s', which NumPy writes for types that it does not have; if it is bfloat16, save a.view('<u2')", descr)
	case "|V1", "<V1":
		return fmt.Errorf("its type is '%s', which NumPy writes for types that it does not have; if it is an 8-bit float, save a.view('|u1')", descr)
	}
	return fmt.Errorf("its type '%s' is not supported; little-endian %s are: convert it, as with a.astype('%s')", descr, typeList, string(Float32))
}

// readDict reads the magic, the version and the text of the header.
func readDict(r io.Reader) (string, error) {
	start := make([]byte, len(magic)+2)
	if _, err := io.ReadFull(r, start); err != nil {
		return "", headerError(err, len(start))
	}
	if !bytes.HasPrefix(start, []byte(magic)) {
		return "", errNotNumPy
	}
	lengthBytes := 4
	switch major := start[len(magic)]; major {
	case 1:
		lengthBytes = 2
	case 2, 3:
	default:
		return "", fmt.Errorf("it has version %d of NumPy's format; versions 1, 2 and 3 are supported", major)
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(r, size[:lengthBytes]); err != nil {
		return "", headerError(err, 0)
	}
	n := binary.LittleEndian.Uint32(size)
	if n > maxHeader {
		return "", fmt.Errorf("its header is damaged: %d bytes long", n)
	}
	dict := make([]byte, n)
	if _, err := io.ReadFull(r, dict); err != nil {
		return "", headerError(err, 0)
	}
	return string(dict), nil
}

// headerError returns the error for a file that ends inside its header.
func headerError(err error, first int) error {
	switch {
	case errors.Is(err, io.EOF) && first > 0:
		return errors.New("the file is empty")
	case errors.Is(err, io.ErrUnexpectedEOF) && first > 0:
		return errNotNumPy
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is cut off inside its header")
	}
	return err
}

// parseDict parses the Python dictionary of a header. It accepts strings, True, False,
// integers, and tuples and lists of them. They become string, bool, int and []any.
func parseDict(s string) (map[string]any, error) {
	p := &literal{rest: s}
	values := map[string]any{}
	p.expect('{')
	for p.err == nil && !p.accept('}') {
		key, _ := p.value(0).(string)
		p.expect(':')
		values[key] = p.value(0)
		if !p.accept(',') {
			p.expect('}')
			break
		}
	}
	if p.skip(); p.err == nil && p.rest != "" {
		p.fail("text after the dictionary")
	}
	return values, p.err
}

// literal parses a Python literal at the front of rest. After an error every method does
// nothing.
type literal struct {
	rest string
	err  error
}

func (p *literal) fail(what string) {
	if p.err == nil {
		p.err, p.rest = errors.New(what), ""
	}
}

func (p *literal) skip() { p.rest = strings.TrimLeft(p.rest, " \t\n\x00") }

// accept consumes c if it is next.
func (p *literal) accept(c byte) bool {
	if p.skip(); p.rest != "" && p.rest[0] == c {
		p.rest = p.rest[1:]
		return true
	}
	return false
}

func (p *literal) expect(c byte) {
	if !p.accept(c) {
		p.fail(fmt.Sprintf("%q is missing", c))
	}
}

// maxDepth limits the nesting of tuples and lists.
const maxDepth = 8

// value parses one literal, at the given depth.
func (p *literal) value(depth int) any {
	p.skip()
	switch {
	case depth > maxDepth:
		p.fail("brackets nested too deep")
	case p.rest == "":
		p.fail("a value is missing")
	case p.accept('('):
		return p.list(')', depth)
	case p.accept('['):
		return p.list(']', depth)
	case p.rest[0] == '\'' || p.rest[0] == '"':
		return p.text()
	case strings.HasPrefix(p.rest, "True"):
		p.rest = p.rest[len("True"):]
		return true
	case strings.HasPrefix(p.rest, "False"):
		p.rest = p.rest[len("False"):]
		return false
	default:
		return p.integer()
	}
	return nil
}

// list parses values up to the closing bracket end; a trailing comma is allowed.
func (p *literal) list(end byte, depth int) []any {
	items := []any{}
	for p.err == nil && !p.accept(end) {
		items = append(items, p.value(depth+1))
		if !p.accept(',') {
			p.expect(end)
			break
		}
	}
	return items
}

// text parses a quoted string without escapes.
func (p *literal) text() string {
	end := strings.IndexByte(p.rest[1:], p.rest[0])
	if end < 0 {
		p.fail("a string does not end")
		return ""
	}
	s := p.rest[1 : 1+end]
	p.rest = p.rest[end+2:]
	return s
}

// integer parses a decimal number; Python 2 ends long ones with an L.
func (p *literal) integer() int {
	end := strings.IndexFunc(p.rest, func(c rune) bool { return c != '-' && (c < '0' || c > '9') })
	if end < 0 {
		end = len(p.rest)
	}
	n, err := strconv.Atoi(p.rest[:end])
	if err != nil {
		p.fail("a value cannot be read")
		return 0
	}
	p.rest = strings.TrimPrefix(p.rest[end:], "L")
	return n
}
