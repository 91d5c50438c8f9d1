package agentapi

import "github.com/danielgtaylor/huma/v2"

// shapes are the named shapes of the description; what no call needs is left out of it.
func shapes() map[string]*huma.Schema {
	all := map[string]*huma.Schema{
		"Error":     filled(members{"detail": text("one sentence that says what went wrong, with the value, and what to do")}),
		"Assistant": assistantShape(), "Thread": threadShape(), "ThreadState": stateShape(), "Run": runShape(), "Cron": cronShape(), "Item": itemShape(),
		"Interrupt": interruptShape(), "Failure": filled(members{"error": text("type of the exception"), "message": text("")}), "Task": taskShape(),
		"TTL": filled(members{
			"strategy": choice(nil, "", "delete", "keep_latest"), "ttl_minutes": &huma.Schema{Type: "number"}, "expires_at": orNothing(moment("")),
		}),
		"CheckpointConfig": checkpointShape(), "RunConfig": configShape(), "Command": commandShape(), "Send": sendShape(), "RunCreate": runCreate(),
		"TTLRequest": ttlRequest(), "GraphSchemas": schemasShape(), "Volume": filled(members{"count": amount(""), "bytes": amount("")}),
	}
	for _, name := range []string{"Assistant", "Thread", "ThreadState", "Run", "Cron"} {
		all["Selected"+name] = some(all[name])
	}
	return all
}

func assistantShape() *huma.Schema {
	return filled(members{
		"assistant_id": uuidOf(""), "graph_id": text("key of graphs in the graph configuration"), "config": free("tags, recursion_limit, configurable"),
		"context": free(""), "created_at": moment(""), "updated_at": moment(""), "metadata": free(""), "version": amount("from 1"),
		"name": text(""), "description": orNothing(text("")),
	})
}

func threadShape() *huma.Schema {
	return record([]string{"ttl", "extracted"}, members{
		"thread_id": uuidOf(""), "created_at": moment(""), "updated_at": moment(""), "state_updated_at": orNothing(moment("moves only with the state")),
		"metadata": free(""), "config": free(""), "status": choice(nil, "", "idle", "busy", "interrupted", "error"),
		"values":     anything("the state's values; null before the first checkpoint"),
		"interrupts": mapOf(listOf(ref("Interrupt"), ""), "what waits for an answer, by task id"),
		"error":      orNothing(ref("Failure")), "ttl": orNothing(ref("TTL")), "extracted": free("by alias, with `extract`"),
	})
}

// mapOf is an object whose members, whatever their names, are of one shape.
func mapOf(s *huma.Schema, doc string) *huma.Schema {
	return &huma.Schema{Type: "object", AdditionalProperties: s, Description: doc}
}

func interruptShape() *huma.Schema {
	return &huma.Schema{Type: "object", Required: []string{"value"}, Description: "a question of the graph; the library may say more of it", Extensions: map[string]any{
		"additionalProperties": true, "properties": members{"id": text("resume by it"), "value": anything("what the graph asked")},
	}}
}

func taskShape() *huma.Schema {
	return filled(members{
		"id": text(""), "name": text("of the node"), "path": anything(""), "error": anything(""), "interrupts": listOf(ref("Interrupt"), ""),
		"checkpoint": anything("address of the subgraph's state, unless `state` holds it"), "state": anything("the subgraph's ThreadState, with subgraphs=true"),
		"result": anything(""),
	})
}

func stateShape() *huma.Schema {
	return filled(members{
		"values": anything("what the channels hold"), "next": listOf(text(""), "the nodes to run next"), "tasks": listOf(ref("Task"), ""),
		"checkpoint": ref("CheckpointConfig"), "metadata": orNothing(free("")), "created_at": orNothing(text("")),
		"parent_checkpoint": orNothing(ref("CheckpointConfig")), "interrupts": listOf(ref("Interrupt"), ""),
	})
}

func checkpointShape() *huma.Schema {
	return &huma.Schema{Type: "object", Description: "address of a checkpoint", Properties: members{
		"thread_id": orNothing(text("")), "checkpoint_ns": orNothing(text("\"\" is the graph itself, else a subgraph")),
		"checkpoint_id": orNothing(text("")), "checkpoint_map": orNothing(free("")),
	}}
}

func runShape() *huma.Schema {
	return filled(members{
		"run_id": uuidOf(""), "thread_id": uuidOf(""), "assistant_id": uuidOf(""), "created_at": moment("a delayed run's lies in the future"),
		"updated_at": moment(""), "status": choice(nil, "a run that stopped at an interrupt is a success", runStatuses()...), "metadata": free(""),
		"kwargs":                 free("what was asked for, with defaults: input, command, config, context, stream_mode and the others"),
		"multitask_strategy":     choice(nil, "", "reject", "rollback", "interrupt", "enqueue"),
		"langsmith_session_name": orNothing(text("")), "cancel_reason": orNothing(text("")),
	})
}

func runStatuses() []string {
	return []string{"pending", "running", "error", "success", "timeout", "interrupted"}
}

func cronShape() *huma.Schema {
	return filled(members{
		"cron_id": uuidOf(""), "assistant_id": uuidOf(""), "thread_id": orNothing(uuidOf("null if each firing makes a thread of its own")),
		"on_run_completed": orNothing(choice(nil, "", "delete", "keep")), "end_time": orNothing(moment("")), "schedule": text("five fields"),
		"timezone": orNothing(text("IANA name; null is UTC")), "created_at": moment(""), "updated_at": moment(""), "user_id": orNothing(text("whom the runs act as")),
		"payload": free("the run creation"), "next_run_date": orNothing(moment("null when there is none any more")), "metadata": free(""),
		"enabled": {Type: "boolean"},
	})
}

func itemShape() *huma.Schema {
	return record([]string{"score"}, members{
		"namespace": listOf(text(""), ""), "key": text(""), "value": free(""), "created_at": moment(""), "updated_at": moment(""),
		"score": orNothing(&huma.Schema{Type: "number", Description: "similarity to the query"}),
	})
}

func schemasShape() *huma.Schema {
	schema := func(doc string) *huma.Schema { return orNothing(free(doc)) }
	return record([]string{"graph_id", "input_schema", "output_schema", "config_schema", "context_schema"}, members{
		"graph_id": text(""), "state_schema": schema("JSON Schema; {} if it cannot be derived"), "input_schema": schema(""), "output_schema": schema(""),
		"config_schema": schema(""), "context_schema": schema(""),
	})
}

func configShape() *huma.Schema {
	one := 1.0
	return request(nil, members{
		"tags": listOf(text(""), ""), "recursion_limit": {Type: "integer", Minimum: &one, Description: "steps; absent = the graph's own"},
		"configurable": free("read by the graph; checkpoint_id, checkpoint_ns and checkpoint_map in it address a checkpoint"), "metadata": free(""),
		"run_name": text(""), "max_concurrency": amount(""),
	})
}

func sendShape() *huma.Schema {
	return request([]string{"node"}, members{"node": text(""), "input": anything("")})
}

func commandShape() *huma.Schema {
	return request(nil, members{
		"update": either("", free(""), listOf(anything("a pair of key and value"), "")),
		"resume": anything("the answer to an interrupt, or {interrupt id: answer} where several wait"),
		"goto":   either("a node's name, a Send, or a list of them", text(""), ref("Send"), listOf(either("", text(""), ref("Send")), "")),
	})
}

func ttlRequest() *huma.Schema {
	minutes := &huma.Schema{Type: "number", Description: "minutes"}
	return either("", minutes, request([]string{"ttl"}, members{
		"ttl": minutes, "strategy": choice("delete", "delete counts from now; keep_latest from the last change of state", "delete", "keep_latest"),
	}))
}

// runMembers are the members of a run creation (reference 4.1).
func runMembers() members {
	zero, lowest, highest := 0.0, 1, 65536
	nodes := func() *huma.Schema {
		return either("\"*\" for every node", &huma.Schema{Type: "string", Enum: []any{"*"}}, listOf(text(""), ""))
	}
	mode := choice(nil, "", streamModes()...)
	return members{
		"assistant_id": text("UUID of an assistant, or id of a graph"), "input": anything("null goes on from the thread's state"),
		"command": ref("Command"), "checkpoint": ref("CheckpointConfig"), "checkpoint_id": text("older form of `checkpoint`"),
		"metadata": free(""), "config": ref("RunConfig"), "context": free("laid over the assistant's"),
		"webhook":          &huma.Schema{Type: "string", Format: "uri-reference", MinLength: &lowest, MaxLength: &highest, Description: "is sent the run when it has ended"},
		"interrupt_before": nodes(), "interrupt_after": nodes(), "stream_mode": either("[\"values\"] if absent", mode, listOf(mode, "")),
		"stream_subgraphs": flag(""), "stream_resumable": flag("keep the stream, so that it can be read again by Last-Event-ID"),
		"feedback_keys":      textOrList("keys to make feedback URLs for"),
		"multitask_strategy": choice("enqueue", "what happens if the thread has a run in flight", "reject", "rollback", "interrupt", "enqueue"),
		"if_not_exists":      choice("reject", "what happens if the thread is missing", "create", "reject"),
		"after_seconds":      {Type: "number", Minimum: &zero, Default: 0, Description: "do not start before"},
		"durability":         choice("async", "when checkpoints are written", "sync", "async", "exit"),
		"checkpoint_during":  {Type: "boolean", Deprecated: true, Description: "without durability: true = async, false = exit"},
		"strict_resume":      flag("a resume for an interrupt that does not wait fails the run"),
		"on_disconnect":      choice("continue", "what a closed connection does to the run", "cancel", "continue"),
		"on_completion":      choice("delete", "what becomes of a stateless run's thread; complete is delete, continue is keep", "delete", "keep", "complete", "continue"),
		"langsmith_tracer":   request(nil, members{"project_name": text(""), "example_id": text("")}),
	}
}

func runCreate() *huma.Schema { return request([]string{"assistant_id"}, runMembers()) }
