// Package shell quotes words of commands that are printed for a person to paste into a
// shell.
package shell

import "strings"

// plain are the characters that mean nothing but themselves in a word of any POSIX shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// Quote returns a word that a POSIX shell reads as s: s itself where no character of it
// means something to the shell, else s in single quotes.
func Quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
