// Package shell quotes the words of printed commands, so that users can paste them into a shell.
package shell

import "strings"

// plain holds the characters without a special meaning in any POSIX shell. A # has one only at the
// beginning of a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-#"

// Quote returns a word that a POSIX shell reads as s: s itself if all its characters are plain,
// otherwise s in single quotes.
func Quote(s string) string {
	if s != "" && s[0] != '#' && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
