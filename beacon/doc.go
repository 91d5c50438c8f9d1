// Package beacon is the domain of telemetry (spec 4.5; control-plane reference 9), shared by the installation that sends it
// and the collector that receives it: licences and tokens, trace transactions, usage snapshots, signals, the rules of
// severity, redaction and versions, and the ports of the collector. No I/O, no clock, no randomness.
package beacon
