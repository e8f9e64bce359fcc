// Package highs solves linear and mixed-integer programs with the program of the HiGHS project, which
// it runs as a child process on files in the LP format of CPLEX.
package highs

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Var is a variable of a model.
type Var int

// Term is a coefficient times a variable.
type Term struct {
	Var Var
	By  float64
}

// Model minimizes a sum of terms under constraints. Variables are at least 0.
type Model struct {
	vars []variable
	rows []row
}

type variable struct {
	name    string
	most    float64
	cost    float64
	integer bool
}

type row struct {
	name   string
	terms  []Term
	sense  string // <=, >= or =
	amount float64
}

// Add adds a variable of 0 to most. The name must be one of the LP format.
func (m *Model) Add(name string, most, cost float64, integer bool) Var {
	m.vars = append(m.vars, variable{name, most, cost, integer})
	return Var(len(m.vars) - 1)
}

// Limit adds a constraint: the sum of the terms is <=, >= or = the amount.
func (m *Model) Limit(name string, terms []Term, sense string, amount float64) {
	m.rows = append(m.rows, row{name, terms, sense, amount})
}

// Write writes the model in the LP format.
func (m *Model) Write(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprint(w, "Minimize\n cost:")
	count := 0
	for _, v := range m.vars {
		if v.cost != 0 {
			term(w, &count, v.cost, v.name)
		}
	}
	if count == 0 && len(m.vars) > 0 {
		term(w, &count, 0, m.vars[0].name)
	}
	fmt.Fprint(w, "\nSubject To\n")
	for _, r := range m.rows {
		fmt.Fprintf(w, " %s:", r.name)
		count := 0
		for _, t := range r.terms {
			term(w, &count, t.By, m.vars[t.Var].name)
		}
		fmt.Fprintf(w, " %s %s\n", r.sense, number(r.amount))
	}
	fmt.Fprint(w, "Bounds\n")
	for _, v := range m.vars {
		if !math.IsInf(v.most, 1) {
			fmt.Fprintf(w, " %s <= %s\n", v.name, number(v.most))
		}
	}
	fmt.Fprint(w, "General\n")
	for _, v := range m.vars {
		if v.integer {
			fmt.Fprintf(w, " %s\n", v.name)
		}
	}
	fmt.Fprint(w, "End\n")
	return w.Flush()
}

// term writes a signed term; a line has eight.
func term(w io.Writer, count *int, by float64, name string) {
	if *count++; *count%8 == 0 {
		fmt.Fprint(w, "\n  ")
	}
	sign := "+"
	if by < 0 {
		sign, by = "-", -by
	}
	fmt.Fprintf(w, " %s %s %s", sign, number(by), name)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// violation returns the first constraint that values break, or "".
func (m *Model) violation(values []float64) string {
	const slack = 1e-5
	for i, v := range m.vars {
		x := values[i]
		if !(x >= -slack) || x > v.most+slack || v.integer && math.Abs(x-math.Round(x)) > slack {
			return "the value of " + v.name
		}
	}
	for _, r := range m.rows {
		sum, size := 0.0, 1.0
		for _, t := range r.terms {
			sum += t.By * values[t.Var]
			size += math.Abs(t.By * values[t.Var])
		}
		if r.sense != ">=" && sum > r.amount+slack*size || r.sense != "<=" && sum < r.amount-slack*size {
			return "constraint " + r.name
		}
	}
	return ""
}

// cost returns what values cost.
func (m *Model) cost(values []float64) (cost float64) {
	for i, v := range m.vars {
		cost += v.cost * values[i]
	}
	return cost
}

// Size returns the number of variables.
func (m *Model) Size() int { return len(m.vars) }
