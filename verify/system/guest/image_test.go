package guest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// object returns an object file of ELF64 that has a section with a text, and nothing else.
func object(section, text string) []byte {
	const headerSize, sectionSize = 64, 64
	names := "\x00" + section + "\x00.names\x00"
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: headerSize, Size: uint64(len(text))},
		{Name: uint32(2 + len(section)), Type: uint32(elf.SHT_STRTAB), Off: headerSize + uint64(len(text)), Size: uint64(len(names))},
	}
	header := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: headerSize,
		Shoff: headerSize + uint64(len(text)+len(names)), Shentsize: sectionSize, Shnum: uint16(len(sections)), Shstrndx: 2,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	var out bytes.Buffer
	for _, part := range []any{header, []byte(text + names), sections} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// kernel returns a folder of modules, each with what it depends on.
func kernel(t *testing.T, modules map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, depends := range modules {
		text := "license=GPL\x00depends=" + depends + "\x00name=" + name + "\x00"
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".ko"), object(".modinfo", text), 0o644))
	}
	return folder
}

// TestOrder: each module comes once, after those that it depends on. Names with _ may be files with -.
func TestOrder(t *testing.T) {
	image := Image{
		Kernel: kernel(t, map[string]string{
			"rdma_rxe": "ib_core,udp_tunnel,ib_uverbs", "ib_uverbs": "ib_core", "ib_core": "", "udp_tunnel": "",
			"usb-common": "", "vhci-hcd": "usb_common",
		}),
		Modules: []string{"ib_core", "rdma_rxe", "vhci-hcd"},
	}
	order, err := image.order()
	require.NoError(t, err)
	assert.Equal(t, []string{"ib_core", "udp_tunnel", "ib_uverbs", "rdma_rxe", "usb-common", "vhci-hcd"}, order)
}

// TestMissingModules: a module, or one that it depends on, which is not there or is none, is an error.
func TestMissingModules(t *testing.T) {
	folder := kernel(t, map[string]string{"a": "b"})
	_, err := (&Image{Kernel: folder, Modules: []string{"a"}}).order()
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b.ko"), object(".text", ""), 0o644))
	_, err = (&Image{Kernel: folder, Modules: []string{"a"}}).order()
	assert.ErrorContains(t, err, "b.ko has no .modinfo")
}

// TestPacker: files keep their modes, what is there stays, and the first error remains.
func TestPacker(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	require.NoError(t, os.WriteFile(from, []byte("text"), 0o755))
	p := &packer{root: t.TempDir()}
	p.place("/bin/a", from)
	p.write("/bin/b", "other")
	p.place("/bin/b", from)
	require.NoError(t, p.err)
	for name, want := range map[string]string{"a": "text", "b": "other"} {
		got, err := os.ReadFile(filepath.Join(p.root, "bin", name))
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	info, err := os.Stat(filepath.Join(p.root, "bin/a"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o755, info.Mode().Perm())
	p.place("/bin/c", from+".missing")
	p.place("/bin/d", from)
	assert.ErrorIs(t, p.err, os.ErrNotExist)
	assert.NoFileExists(t, filepath.Join(p.root, "bin/d"))
}
