// Package process runs revisions as processes of this machine, the runtime of the embedded installation (architecture 1).
//
// Every workload is one agent server in a session of its own, so that it survives the end of the platform. What a new
// Runtime over the same directory must know to adopt it is in run/<revision id>/state.json, which never holds a secret.
// DESIGN.md in this directory tells how no process is ever lost or confused with another.
package process
