package lint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// headers are the C and C++ headers whose macros a name must not be. Verilator turns names of
// Verilog into names of C++ beside these, and cocotb makes it keep every name.
const headers = `
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
`

// cWords are the keywords of C and C++, and words that are keywords or macros of some compilers.
var cWords = words(`
	alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
	char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
	constinit continue decltype default delete do double dynamic_cast else enum explicit export
	extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
	nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
	return short signed sizeof static static_assert static_cast struct switch template this
	thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
	virtual void volatile wchar_t while xor xor_eq

	cdecl far fortran huge interrupt near override pascal stdcall
	main linux unix NULL TRUE FALSE
`)

// verilogWords are the keywords of Verilog-2005, and the statement that proofs add under FORMAL.
var verilogWords = words(`
	assert

	always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign
	default defparam design disable edge else end endcase endconfig endfunction endgenerate
	endmodule endprimitive endspecify endtable endtask event for force forever fork function
	generate genvar highz0 highz1 if ifnone incdir include initial inout input instance integer
	join large liblist library localparam macromodule medium module nand negedge nmos nor
	noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1
	pulldown pullup pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat
	rnmos rpmos rtran rtranif0 rtranif1 scalared showcancelled signed small specify specparam
	strong0 strong1 supply0 supply1 table task time tran tranif0 tranif1 tri tri0 tri1 triand trior
	trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor xor
`)

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

var (
	// noName matches what holds no name: comments, strings, numbers, directives and system tasks.
	noName = regexp.MustCompile("(?s)//[^\n]*|/\\*.*?\\*/|\"(?:\\\\.|[^\"\\\\])*\"|'[sS]?[bodhBODH][0-9a-fA-FxXzZ_?]+|[`$][A-Za-z_]\\w*")
	word   = regexp.MustCompile(`[A-Za-z_][\w$]*`)
	macro  = regexp.MustCompile(`(?m)^#define (\w+)`)
)

// Names reports the names in the cards' Verilog that C or C++ uses itself, as a keyword or as a
// macro of a standard header. Such a name breaks the build of a simulation that keeps all names.
func Names(ctx context.Context, cards ...Card) error {
	taken, err := macros(ctx)
	if err != nil {
		return err
	}
	maps.Copy(taken, cWords)
	var findings []error
	for _, file := range distinctFiles(cards) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bad := takenNames(string(text), taken); len(bad) > 0 {
			findings = append(findings, fmt.Errorf("%s: C++ uses these names itself: %s", file, strings.Join(bad, " ")))
		}
	}
	return errors.Join(findings...)
}

// takenNames returns the names of a Verilog text that are taken, sorted.
func takenNames(text string, taken map[string]bool) []string {
	bad := map[string]bool{}
	for _, name := range word.FindAllString(noName.ReplaceAllString(text, " "), -1) {
		if taken[name] && !verilogWords[name] {
			bad[name] = true
		}
	}
	return slices.Sorted(maps.Keys(bad))
}

// macros returns the macros of the C headers, in C and in C++, and of Verilator's.
func macros(ctx context.Context) (map[string]bool, error) {
	root, err := exec.CommandContext(ctx, "verilator", "--getenv", "VERILATOR_ROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("verilator --getenv VERILATOR_ROOT: %w", err)
	}
	include := filepath.Join(strings.TrimSpace(string(root)), "include")
	set := map[string]bool{}
	for language, more := range map[string]string{
		"c":   "",
		"c++": "#include \"verilated.h\"\n#include \"verilated_vpi.h\"\n",
	} {
		cmd := exec.CommandContext(ctx, "c++", "-x", language, "-dM", "-E", "-I"+include, "-I"+filepath.Join(include, "vltstd"), "-")
		cmd.Stdin = strings.NewReader(headers + more)
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
		}
		for _, found := range macro.FindAllSubmatch(text, -1) {
			set[string(found[1])] = true
		}
	}
	return set, nil
}
