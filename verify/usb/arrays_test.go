package usb

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/npy"
)

const workers = 4

// arrays writes a file of random numbers for each worker.
func arrays(t *testing.T, dir string, elements int) (files []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(elements)))
	for w := range workers {
		data := make([]byte, 0, 4*elements)
		for range elements {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(random.NormFloat64())))
		}
		file := filepath.Join(dir, fmt.Sprintf("w%d.npy", w))
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, npy.Write(f, npy.Array{Type: npy.Float32, Shape: []int{elements}, Data: data}))
		require.NoError(t, f.Close())
		files = append(files, file)
	}
	return files
}
