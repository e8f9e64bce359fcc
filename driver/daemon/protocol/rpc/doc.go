// Package rpc has the gRPC service of service.proto, which carries the messages of package protocol. It
// is a package of its own, so that a program without a daemon does not link gRPC.
//
// go generate needs the tools of `make setup`: eval "$(make env)". It writes into the folder OUT, by default
// this one. verify/deps/test_generated.py checks that the files are current.
package rpc

//go:generate sh -c "python -m grpc_tools.protoc -I . -I .. --plugin=protoc-gen-go=$DOLLAR(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$DOLLAR(go tool -n protoc-gen-go-grpc) --go_out=$DOLLAR{OUT:-.} --go_opt=paths=source_relative --go-grpc_out=$DOLLAR{OUT:-.} --go-grpc_opt=paths=source_relative service.proto"
