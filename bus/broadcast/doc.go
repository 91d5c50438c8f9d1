// Package broadcast is an agent.Bus over anything that carries short texts to all who are connected to it, such as the
// notifications of a database. Agent servers on different machines that share a database hear each other by it.
//
// Messages become a stream of bytes per process, which is cut into numbered pieces of the size the line carries. A missing
// number tells a listener that something was lost, and its subscribers of agent.TopicMissed hear of it.
package broadcast
