package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// precedence has the precedence of Verilog's binary operators, the lowest first.
var precedence = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6,
	"<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

var token = regexp.MustCompile(`^\s*(?:([0-9]*'[sS]?[bodhBODH][0-9a-fA-F_xXzZ?]+|[0-9][0-9_]*)|([A-Za-z_$][A-Za-z0-9_$]*)|` +
	`(\+:|\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%&|^~!<>?:(){},\[\]]))`)

// parser reads tokens from the front of rest; it stops at the first error.
type parser struct {
	rest                       string
	constant, word, mark, next string // the token at the front; next is its text, "" at the end
}

// Parse reads an expression.
func Parse(text string) (*Expr, error) {
	return parse(text, func(p *parser) (*Expr, error) { return p.expression() })
}

// Range reads the bits [msb:lsb] of a declaration, with the brackets.
func Range(text string) (msb, lsb *Expr, err error) {
	_, err = parse(text, func(p *parser) (*Expr, error) {
		if err := p.expect("["); err != nil {
			return nil, err
		}
		if msb, err = p.expression(); err != nil {
			return nil, err
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		if lsb, err = p.expression(); err != nil {
			return nil, err
		}
		return msb, p.expect("]")
	})
	return msb, lsb, err
}

func parse(text string, read func(*parser) (*Expr, error)) (*Expr, error) {
	p := &parser{rest: text}
	err := p.advance()
	var e *Expr
	if err == nil {
		e, err = read(p)
	}
	if err == nil && p.next != "" {
		err = fmt.Errorf("unexpected %s", p.next)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", text, err)
	}
	return e, nil
}

func (p *parser) advance() error {
	p.constant, p.word, p.mark, p.next = "", "", "", ""
	found := token.FindStringSubmatch(p.rest)
	if found == nil {
		if rest := strings.TrimSpace(p.rest); rest != "" {
			return fmt.Errorf("unexpected %s", rest)
		}
		return nil
	}
	p.constant, p.word, p.mark = found[1], found[2], found[3]
	p.next = p.constant + p.word + p.mark
	p.rest = p.rest[len(found[0]):]
	return nil
}

// expect takes the given mark.
func (p *parser) expect(mark string) error {
	if p.mark != mark {
		return fmt.Errorf("%q instead of %s", p.next, mark)
	}
	return p.advance()
}

func (p *parser) expression() (*Expr, error) {
	condition, err := p.operation(1)
	if err != nil || p.mark != "?" {
		return condition, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	yes, err := p.expression()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	no, err := p.expression()
	return &Expr{kind: choice, args: []*Expr{condition, yes, no}}, err
}

// operation reads operators of the given precedence and above.
func (p *parser) operation(least int) (*Expr, error) {
	left, err := p.operand()
	for err == nil && precedence[p.mark] >= least {
		op := p.mark
		if err := p.advance(); err != nil {
			return nil, err
		}
		var right *Expr
		right, err = p.operation(precedence[op] + 1)
		left = &Expr{kind: binary, op: op, args: []*Expr{left, right}}
	}
	return left, err
}

func (p *parser) operand() (*Expr, error) {
	switch {
	case p.constant != "":
		e, err := readNumber(p.constant)
		if err != nil {
			return nil, err
		}
		return e, p.advance()
	case p.word != "":
		return p.named()
	case p.mark != "" && strings.Contains("-+!~&|^", p.mark):
		op := p.mark
		if err := p.advance(); err != nil {
			return nil, err
		}
		of, err := p.operand()
		return &Expr{kind: unary, op: op, args: []*Expr{of}}, err
	case p.mark == "(":
		if err := p.advance(); err != nil {
			return nil, err
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	case p.mark == "{":
		return p.braces()
	}
	return nil, fmt.Errorf("%q instead of an operand", p.next)
}

// named reads a name, a selection of its bits, or a call.
func (p *parser) named() (*Expr, error) {
	e := &Expr{kind: name, text: p.word}
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch p.mark {
	case "(":
		e.kind = call
		return e, p.list(e, ")")
	case "[":
		e.kind = selected
	default:
		return e, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	first, err := p.expression()
	if err != nil {
		return nil, err
	}
	e.args = []*Expr{first}
	if p.mark == ":" || p.mark == "+:" {
		e.op = p.mark
		if err := p.advance(); err != nil {
			return nil, err
		}
		second, err := p.expression()
		if err != nil {
			return nil, err
		}
		e.args = append(e.args, second)
	}
	return e, p.expect("]")
}

// list reads expressions between commas, up to the closing mark.
func (p *parser) list(into *Expr, end string) error {
	for {
		if err := p.advance(); err != nil {
			return err
		}
		e, err := p.expression()
		if err != nil {
			return err
		}
		into.args = append(into.args, e)
		if p.mark != "," {
			return p.expect(end)
		}
	}
}

// braces reads a concatenation or a replication.
func (p *parser) braces() (*Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	first, err := p.expression()
	if err != nil {
		return nil, err
	}
	switch p.mark {
	case "{":
		inner, err := p.braces()
		if err != nil {
			return nil, err
		}
		return &Expr{kind: repeat, args: []*Expr{first, inner}}, p.expect("}")
	case ",":
		e := &Expr{kind: concat, args: []*Expr{first}}
		return e, p.list(e, "}")
	}
	return &Expr{kind: concat, args: []*Expr{first}}, p.expect("}")
}

// readNumber reads a constant, with its size if it has one.
func readNumber(text string) (*Expr, error) {
	e := &Expr{kind: number, text: text}
	size, digits, sized := strings.Cut(strings.ReplaceAll(text, "_", ""), "'")
	base := 10
	if sized {
		digits = strings.TrimLeft(digits, "sS")
		base = map[byte]int{'b': 2, 'o': 8, 'd': 10, 'h': 16}[digits[0]|0x20]
		digits = digits[1:]
		e.width, _ = strconv.Atoi(size)
	} else {
		digits = size
	}
	if strings.ContainsAny(digits, "xXzZ?") {
		e.unknown = true
		return e, nil
	}
	value, err := strconv.ParseUint(digits, base, 64)
	e.value = int64(value)
	return e, err
}
