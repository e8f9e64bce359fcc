package wire

// What manifest.json, which hwgen writes into a card's folder, says of itself;
// whoever reads one refuses another.
const (
	ManifestGenerator = "tributary/hwgen"
	ManifestSchema    = 1 // version of the file
)
