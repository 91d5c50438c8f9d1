// Package gateway is the reverse proxy in front of a single machine's deployments: one URL per deployment, whichever
// revision serves it (architecture 1). It switches revisions without losing a request (quality P6): new requests follow
// the route, those in flight stay where they are, and while nothing serves they wait a while.
package gateway
