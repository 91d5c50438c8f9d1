// Package slipway is the ground floor of the house: the nouns of the control service (deployments, revisions, secrets,
// listeners, tenants, keys), the rules that hold between them, and the ports through which the upper floors reach the
// world. It does no I/O, reads no clock and draws no random numbers: times and ids come in as arguments.
package slipway
