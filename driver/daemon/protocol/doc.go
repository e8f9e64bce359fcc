// Package protocol has the messages between a daemon and its clients, of tributary.proto, whose
// comments and SPEC.md in the folder above define them.
//
// go generate needs PyPI's grpcio-tools 1.85.1.
package protocol

//go:generate sh -c "python -m grpc_tools.protoc -I . --plugin=protoc-gen-go=$DOLLAR(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative tributary.proto"
