// Which geometries a card may have.

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/driver/wire"
)

func TestValidate(t *testing.T) {
	good := Config{Lanes: 2, Ports: 4, Chunk: 1014, Window: 8, Shell: wire.ShellStream, Link: 8}
	assert.NoError(t, good.Validate())
	for name, change := range map[string]func(*Config){
		"lanes: 0 ":                    func(c *Config) { c.Lanes = 0 },
		"lanes: 3 ":                    func(c *Config) { c.Lanes = 3 },
		"lanes: 128 ":                  func(c *Config) { c.Lanes = 128 },
		"ports: 0 ":                    func(c *Config) { c.Ports = 0 },
		"ports: 65 ":                   func(c *Config) { c.Ports = 65 },
		"chunk: 0 ":                    func(c *Config) { c.Chunk = 0 },
		"chunk: 5 is no":               func(c *Config) { c.Chunk = 5 },
		"chunk: 65536 ":                func(c *Config) { c.Chunk, c.Shell, c.Link = 1<<16, wire.ShellNone, 0 },
		"a result frame of 4102 bytes": func(c *Config) { c.Chunk = 1016 },
		"window: 6 ":                   func(c *Config) { c.Window = 6 },
		"jobs: 3 ":                     func(c *Config) { c.Jobs = 3 },
		"jobs: 32 ":                    func(c *Config) { c.Jobs = 32 },
		"jobs: -1 ":                    func(c *Config) { c.Jobs = -1 },
		"link: 24 ":                    func(c *Config) { c.Link = 24 },
		"link: 8 bits with shell none": func(c *Config) { c.Shell = wire.ShellNone },
		"shell: 9 ":                    func(c *Config) { c.Shell = 9 },
		"sum: there is no sum 99":      func(c *Config) { c.Sum = 99 },
		"format: there is no format 9": func(c *Config) { c.Format = 9 },
		"bf16 does not hold every":     func(c *Config) { c.Result = wire.BF16 },
		"saturate: fp32 does not":      func(c *Config) { c.Saturate = true },
	} {
		c := good
		change(&c)
		assert.ErrorContains(t, c.Validate(), name)
		_, err := NewCard(c)
		assert.ErrorContains(t, err, name)
	}
}

func TestValidateReportsEverything(t *testing.T) {
	err := Config{Lanes: 3, Ports: -1, Chunk: -1, Window: 5, Shell: 9}.Validate()
	for _, want := range []string{"lanes", "ports", "chunk", "window", "shell"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestHashCoversEveryRegisterOfTheBlock(t *testing.T) {
	base := Config{Lanes: 2, Ports: 4, Chunk: 8, Window: 8}
	seen := map[uint64]bool{base.Hash(): true}
	for _, change := range []func(*Config){
		func(c *Config) { c.Lanes = 4 }, func(c *Config) { c.Ports = 5 }, func(c *Config) { c.Chunk = 16 },
		func(c *Config) { c.Window = 4 }, func(c *Config) { c.Jobs = 2 }, func(c *Config) { c.Format = wire.BF16 }, func(c *Config) { c.Result = wire.FP16 },
		func(c *Config) { c.Sum = wire.SumExact }, func(c *Config) { c.Saturate = true }, func(c *Config) { c.Shell = wire.ShellStream },
		func(c *Config) { c.Link = 8 }, func(c *Config) { c.Latency = 1 },
	} {
		c := base
		change(&c)
		assert.False(t, seen[c.Hash()])
		seen[c.Hash()] = true
	}
	assert.Equal(t, base.Hash(), base.withDefaults().Hash())
}
