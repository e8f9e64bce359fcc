// Package protocol is the control protocol between `tributary serve` and its clients: messages and
// service of tributary.proto. The package of the daemon's client and the daemon use it.
package protocol

//go:generate python -m grpc_tools.protoc -I . --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative tributary.proto
