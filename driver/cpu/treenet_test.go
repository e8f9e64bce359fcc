package cpu

import (
	"testing"

	"tributary/driver/model"
	"tributary/driver/wire"
	"tributary/verify/protocol/treenet"
)

// inSoftware makes the cards of a tree.
func inSoftware(_ int, cfg model.Config, own wire.Address) (treenet.Card, error) {
	return NewEndpoint(Config(cfg), own)
}

// mixed makes the Go model's cards and cards in software in turn.
func mixed(number int, cfg model.Config, own wire.Address) (treenet.Card, error) {
	if number%2 == 1 {
		return model.NewEndpoint(cfg, own)
	}
	return NewEndpoint(Config(cfg), own)
}

func TestTrees(t *testing.T) { treenet.Trees(t, inSoftware) }

func TestTreesInANewEpoch(t *testing.T) { treenet.TreesInANewEpoch(t, inSoftware) }

// TestMixedTrees: both cards are in one tree.
func TestMixedTrees(t *testing.T) { treenet.Trees(t, mixed) }
