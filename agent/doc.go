// Package agent is the ground of the agent server: assistants, threads, runs, checkpoints, store items and stream frames,
// the rules that hold between them, and the ports of storage, bus and workers. Values that come from graphs are raw JSON
// or opaque typed bytes; nothing here interprets them (agent-server reference 14.4).
package agent
