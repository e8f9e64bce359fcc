// Package emit writes the folder of a planned card: Verilog, manifest, register maps,
// datasheet, picture and simulation. It writes all files or none.
package emit

import (
	"io/fs"
	"slices"
	"strings"

	"tributary/driver/wire"
	"tributary/hwgen/plan"
	"tributary/hwgen/tables"
)

// Files returns all files of the card's folder, in alphabetical order. It reads the leaves
// from rtl. Equal plans give equal bytes.
func Files(p *plan.Plan, rtl fs.FS) (Folder, error) {
	files, err := verilogFiles(p, rtl)
	if err != nil {
		return nil, err
	}
	var sources []string
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".v") {
			sources = append(sources, f.Name)
		}
	}
	manifest := newManifest(p)
	sim, err := simFiles(p, manifest, sources)
	if err != nil {
		return nil, err
	}
	datasheet, err := datasheet(p, manifest)
	if err != nil {
		return nil, err
	}
	board, err := boardFiles(p, manifest, sources, rtl)
	if err != nil {
		return nil, err
	}
	pages, err := specification(p)
	if err != nil {
		return nil, err
	}
	files = append(files, pages...)
	files = append(files, sim...)
	files = append(files, board...)
	files = append(files,
		File{"regs.h", tables.C(p.Prefix, p.Shell.Code, p.Parent)},
		File{"regs.json", tables.JSON(p.Shell.Code, p.Parent)},
		File{"README.md", datasheet},
		File{"block.svg", picture(p)},
	)
	manifest.Files, manifest.Digests = []string{manifestName}, map[string]string{}
	for _, f := range files {
		manifest.Files = append(manifest.Files, f.Name)
		manifest.Digests[f.Name] = digest(f.Data)
	}
	slices.Sort(manifest.Files)
	files = append(files, File{manifestName, manifest.json()})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// specification returns the pages that define a card's behaviour.
func specification(p *plan.Plan) (pages []File, err error) {
	names := []string{"SPEC.md", "PACKET.md", "REGISTERS.md"}
	if p.Shell.Ethernet {
		names = append(names, "NETWORK.md")
	}
	if p.Shell.Code == wire.ShellRoCE {
		names = append(names, "ROCE.md")
	}
	if p.Parent {
		names = append(names, "TREES.md")
	}
	for _, name := range names {
		text, err := wire.Pages.ReadFile(name)
		if err != nil {
			return nil, err
		}
		pages = append(pages, File{name, text})
	}
	return pages, nil
}
