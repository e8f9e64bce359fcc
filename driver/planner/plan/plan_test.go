package plan

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestQuantity: a number where it is exact in 12 digits, otherwise a fraction. Nothing else is read.
func TestQuantity(t *testing.T) {
	for text, value := range map[string]*big.Rat{
		`3`: big.NewRat(3, 1), `-0.5`: big.NewRat(-1, 2), `0`: new(big.Rat), `"69/22"`: big.NewRat(69, 22),
		`0.000244140625`: big.NewRat(1, 1<<12), `"1/8192"`: big.NewRat(1, 1<<13),
	} {
		data, err := json.Marshal(Quantity{value})
		require.NoError(t, err)
		assert.Equal(t, text, string(data))
		var q Quantity
		require.NoError(t, json.Unmarshal(data, &q))
		assert.Zero(t, value.Cmp(q.Rat), text)
	}
	long := strings.Repeat("1", 200)
	var q Quantity
	require.NoError(t, json.Unmarshal([]byte(long), &q))
	assert.Equal(t, long, q.RatString())
	for _, bad := range []string{`"x"`, `""`, `true`, `"1/0"`, `1e3`, `1E3`, `"0x10"`, `"0X10"`, `"0x1p4"`, `"1_000"`, long + "1", `{}`} {
		assert.ErrorContains(t, json.Unmarshal([]byte(bad), &q), "is neither a number nor a fraction", bad)
	}
}

// TestID: strings stay strings, and numbers numbers.
func TestID(t *testing.T) {
	for text, id := range map[string]ID{`"7"`: {Text: "7"}, `7`: {Text: "7", Number: true}, `""`: {}, `"a\"b"`: {Text: `a"b`}, `"A&B"`: {Text: "A&B"}} {
		got := ID{Text: "old", Number: true}
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		assert.Equal(t, id, got)
		data, err := id.MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, text, string(data))
	}
	for _, bad := range []string{``, `true`, `null`, `[1]`, `{}`} {
		var id ID
		assert.EqualError(t, id.UnmarshalJSON([]byte(bad)), fmt.Sprintf("an id is %s; it must be a string or a number", bad))
	}
}

// whole has all keys that the format requires.
const whole = `{"version": 1, "rate": 2, "trees": [{"server": "S", "rate": 2}], "loads": {"links": [{"from": "W", "to": "S", "load": 2, "capacity": 3}],
"switches": [{"node": "A", "load": 1, "capacity": 4}], "servers": [{"node": "S", "load": 5}], "workers": [{"node": "W", "load": 6, "capacity": 7}]}}`

// TestParse: what the format requires has to be there.
func TestParse(t *testing.T) {
	p, err := Parse("p", []byte(whole))
	require.NoError(t, err)
	assert.Equal(t, "3", p.Loads.Links[0].Capacity.RatString())
	assert.Nil(t, p.Loads.Servers[0].Capacity)
	for part, says := range map[string]string{
		`, "rate": 2, "trees"`:       `p: "rate" is missing`,
		`"server": "S", `:            `p: "rate" or "server" of trees[0] is missing`,
		`, "rate": 2}]`:              `p: "rate" or "server" of trees[0] is missing`,
		`"load": 2, `:                `p: "load" or "capacity" of a link is missing`,
		`, "capacity": 3`:            `p: "load" or "capacity" of a link is missing`,
		`"load": 1, `:                `p: "load" or "capacity" of a node is missing`,
		`, "load": 5`:                `p: "load" or "capacity" of a node is missing`,
		`, "load": 6`:                `p: "load" or "capacity" of a node is missing`,
		`, "capacity": 7`:            "",
		`"version": 1, `:             `p: it is no plan: it has no "version"`,
		`{"server": "S", "rate": 2}`: "p: it has no trees",
	} {
		require.Equal(t, 1, strings.Count(whole, part), part)
		text := strings.Replace(whole, part, map[string]string{`, "rate": 2, "trees"`: `, "trees"`, `, "rate": 2}]`: `}]`}[part], 1)
		_, err := Parse("p", []byte(text))
		if says == "" {
			assert.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, says, part)
	}
	for text, says := range map[string]string{
		whole + " {}": "p: line 2, column 150: it is no plan: more text follows",
		strings.Replace(whole, `"rate"`, `"pace"`, 1): `p: it is no plan: unknown field "pace"`,
		strings.Replace(whole, "1", "0", 1):           "p: it is a plan of version 0; this program reads version 1",
	} {
		_, err := Parse("p", []byte(text))
		assert.EqualError(t, err, says)
	}
}

// TestRead reads a file. What Format writes is the same plan, and the same text again.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	_, err := Read(path)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(whole, `"S"`, `"<&>"`, 1)), 0o600))
	p, err := Read(path)
	require.NoError(t, err)
	text, err := p.Format()
	require.NoError(t, err)
	assert.Contains(t, string(text), "\n   \"server\": \"<&>\",\n", "readable")
	again, err := Parse(path, text)
	require.NoError(t, err)
	assert.Equal(t, p, again)
	twice, err := again.Format()
	require.NoError(t, err)
	assert.Equal(t, string(text), string(twice))
}
