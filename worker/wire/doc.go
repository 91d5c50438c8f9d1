// Package wire is the Go side of the worker protocol's frames; DESIGN.md beside it is the protocol.
package wire
