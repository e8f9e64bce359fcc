package wire

// Identification of manifest.json, which hwgen writes into a card's folder. A reader
// refuses a file with other values.
const (
	ManifestGenerator = "tributary/hwgen"
	ManifestSchema    = 1 // version of the file
)
