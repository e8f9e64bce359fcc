package npy

import (
	"bufio"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// availableMemory returns the bytes that this process can allocate without swapping. That is
// the kernel's estimate, or a lower limit of the process's control group.
func availableMemory() uint64 {
	available := uint64(math.MaxUint64)
	if f, err := os.Open("/proc/meminfo"); err == nil {
		defer f.Close()
		available = memAvailable(f)
	}
	if limit, ok := readNumber("/sys/fs/cgroup/memory.max"); ok {
		used, _ := readNumber("/sys/fs/cgroup/memory.current")
		available = min(available, limit-min(used, limit))
	}
	return available
}

// memAvailable returns MemAvailable of /proc/meminfo in bytes, or the largest number if it is
// missing.
func memAvailable(meminfo io.Reader) uint64 {
	lines := bufio.NewScanner(meminfo)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "MemAvailable:" {
			continue
		}
		if kib, err := strconv.ParseUint(words[1], 10, 54); err == nil {
			return kib << 10
		}
	}
	return math.MaxUint64
}

// readNumber reads a file with one number. ok is false for other content, such as "max" in
// memory.max.
func readNumber(path string) (n uint64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
