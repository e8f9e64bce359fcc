package driver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/wire"
)

// TestOnlySumsHaveAMean checks that Mean rejects the results of a card that does not add.
func TestOnlySumsHaveAMean(t *testing.T) {
	for _, sum := range wire.Sums {
		results := []byte{0, 0, 0x80, 0x40} // 4
		err := driver.Info{Name: "model:", Sum: sum.Sum, Format: wire.FP32, Result: wire.FP32}.Mean(results, 2)
		if sum.Adds {
			require.NoError(t, err, sum.Name)
			assert.Equal(t, []byte{0, 0, 0, 0x40}, results, sum.Name)
			continue
		}
		wantError[*driver.InputError](t, err, "mean", sum.Name)
		assert.Equal(t, []byte{0, 0, 0x80, 0x40}, results, sum.Name)
	}
}
