package model_test

import (
	"testing"

	"tributary/driver/model"
	"tributary/driver/wire"
	"tributary/verify/protocol/treenet"
)

// modelled makes the cards of a tree.
func modelled(_ int, cfg model.Config, own wire.Address) (treenet.Card, error) {
	return model.NewEndpoint(cfg, own)
}

func TestTrees(t *testing.T) { treenet.Trees(t, modelled) }

func TestTreesInANewEpoch(t *testing.T) { treenet.TreesInANewEpoch(t, modelled) }
