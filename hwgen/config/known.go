package config

// Known is what a configuration may name: what this build of the generator can
// plan.
type Known struct {
	Formats, Sums, Shells []string
	Linked                []string // the shells that have a link
}
