// Package e2e holds scenarios on the real binary: each script in testdata/script starts slipway, deploys real graphs and
// talks to them with the real clients.
package e2e
