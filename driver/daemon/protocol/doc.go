// Package protocol has the messages between a daemon and its clients, of tributary.proto, whose
// comments and SPEC.md in the folder above define them.
//
// go generate needs the tools of `make setup`: eval "$(make env)". It writes into the folder OUT, by default
// this one. verify/deps/test_generated.py checks that the files are current.
package protocol

//go:generate sh -c "python -m grpc_tools.protoc -I . --plugin=protoc-gen-go=$DOLLAR(go tool -n protoc-gen-go) --go_out=$DOLLAR{OUT:-.} --go_opt=paths=source_relative tributary.proto"
