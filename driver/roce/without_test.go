//go:build !roce

package roce_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
)

// TestWithoutLibibverbs: a program without libibverbs reports what to install and build.
func TestWithoutLibibverbs(t *testing.T) {
	_, err := driver.Open(t.Context(), "roce:unix:none")
	var none *driver.NoCardError
	require.ErrorAs(t, err, &none)
	for _, words := range []string{"apt install libibverbs-dev", "make build", "go build -tags roce"} {
		assert.ErrorContains(t, err, words)
	}
}
