package guest

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Image is what a guest boots.
type Image struct {
	Kernel   string            // the folder that setup.sh has filled
	Modules  []string          // kernel modules to load, after those that they depend on
	Programs []string          // copied to /bin, with the shared libraries that they need
	Plugins  []string          // shared libraries that programs load themselves, copied to the same path
	Files    map[string]string // further files: from the path in the guest to the path here
	Init     string            // path of this package's script init
	Setup    string            // lines of sh that run once, before the first command
}

// Pack writes the image's file system into a folder, which must be empty, and an archive of it to
// the file archive.
func (m *Image) Pack(folder, archive string) error {
	order, err := m.order()
	if err != nil {
		return err
	}
	p := &packer{root: folder}
	p.place("/init", m.Init)
	p.write("/setup", m.Setup)
	p.write("/modules/order", strings.Join(order, "\n")+"\n")
	for _, name := range order {
		p.place("/modules/"+name+".ko", m.module(name))
	}
	for _, program := range append([]string{"/bin/busybox"}, m.Programs...) {
		p.place("/bin/"+filepath.Base(program), program)
		p.libraries(program)
	}
	for _, plugin := range m.Plugins {
		p.place(plugin, plugin)
		p.libraries(plugin)
	}
	for to, from := range m.Files {
		p.place(to, from)
	}
	if p.err != nil {
		return p.err
	}
	pack := exec.Command("sh", "-c", `find . | /bin/busybox cpio -o -H newc >"$0"`, archive)
	pack.Dir = folder
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("cpio: %w: %s", err, out)
	}
	return nil
}

func (m *Image) module(name string) string { return filepath.Join(m.Kernel, name+".ko") }

// order returns the modules, each after those that it depends on.
func (m *Image) order() (order []string, err error) {
	var visit func(name string) error
	visit = func(name string) error {
		if slices.Contains(order, name) {
			return nil
		}
		depends, err := dependencies(m.module(name))
		if err != nil {
			return err
		}
		for _, d := range depends {
			if err := visit(d); err != nil {
				return err
			}
		}
		order = append(order, name)
		return nil
	}
	for _, name := range m.Modules {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// dependencies returns the modules that a module names in its section .modinfo. A module's file has
// the name of the module, or - for each of its _.
func dependencies(module string) (names []string, err error) {
	file, err := elf.Open(module)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s has no .modinfo", module)
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(info), "\x00") {
		list, found := strings.CutPrefix(line, "depends=")
		if !found || list == "" {
			continue
		}
		for _, name := range strings.Split(list, ",") {
			if dashed := strings.ReplaceAll(name, "_", "-"); exists(filepath.Join(filepath.Dir(module), dashed+".ko")) {
				name = dashed
			}
			names = append(names, name)
		}
	}
	return names, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// packer fills a folder; it keeps the first error.
type packer struct {
	root string
	err  error
}

// place copies a file here to a path in the guest, with its mode. What is there stays.
func (p *packer) place(to, from string) {
	path := filepath.Join(p.root, to)
	if p.err != nil || exists(path) {
		return
	}
	text, err := os.ReadFile(from)
	if err != nil {
		p.err = err
		return
	}
	info, err := os.Stat(from)
	if err != nil {
		p.err = err
		return
	}
	p.save(path, text, info.Mode())
}

// write writes a text to a path in the guest.
func (p *packer) write(to, text string) {
	if p.err == nil {
		p.save(filepath.Join(p.root, to), []byte(text), 0o644)
	}
}

func (p *packer) save(path string, text []byte, mode fs.FileMode) {
	p.err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, mode|0o600))
}

// libraries copies the shared libraries of a program; a static one has none.
func (p *packer) libraries(program string) {
	if p.err != nil {
		return
	}
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "not a dynamic executable") {
		p.err = fmt.Errorf("ldd %s: %w: %s", program, err, out)
		return
	}
	for _, word := range strings.Fields(string(out)) {
		if strings.HasPrefix(word, "/") && !strings.HasSuffix(word, ":") {
			p.place(word, word)
		}
	}
}
