// Package engine is the agent server's heart: it admits runs, dispatches them to graph workers by push, keeps leases and
// fences, relays streams, and answers everything the agent API asks. It stores nothing itself and executes no graph.
package engine
