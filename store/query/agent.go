package query

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Instances tells which agent servers of a deployment live.
type Instances interface {
	Register(id string) (release func() error, err error)
	Alive(id string) (bool, error)
	AwaitEnd(ctx context.Context, id string) error
}

// Agent keeps everything of one deployment; it implements agent.Store. It is safe for concurrent use.
type Agent struct {
	engine    Engine
	dialect   Dialect
	instances Instances
	interval  time.Duration // in which traces are counted
	cipher    *agent.Cipher // of secrets; never nil, but what it points to may be
}

// NewAgent makes the agent store over an engine whose database has been migrated.
func NewAgent(e Engine, d Dialect, i Instances) *Agent {
	cipher := new(agent.Cipher)
	return &Agent{engine: sealing{Engine: e, cipher: cipher}, cipher: cipher, dialect: d, instances: i, interval: DefaultTraceInterval}
}

var _ agent.SealedStore = (*Agent)(nil)

func noThread(id string) error {
	return slipway.Errorf(slipway.CodeNotFound, "Thread with ID %s not found", id)
}

func noRun() error { return slipway.Errorf(slipway.CodeNotFound, "Run not found") }

// read runs fn on a snapshot and returns what it yields.
func read[T any](ctx context.Context, e Engine, fn func(Conn) (T, error)) (v T, err error) {
	err = e.Read(ctx, func(c Conn) error { v, err = fn(c); return err })
	return v, err
}

// write runs fn in a transaction and returns what it yields.
func write[T any](ctx context.Context, e Engine, fn func(Conn) (T, error)) (v T, err error) {
	err = e.Write(ctx, func(c Conn) (err error) { v, err = fn(c); return err })
	return v, err
}

// orderBy makes the ORDER BY of a list from a column name of the reference.
func orderBy(columns map[string]string, by string, ascending bool) (string, error) {
	column, ok := columns[by]
	if !ok {
		return "", slipway.Errorf(slipway.CodeInvalid, "cannot sort by %q; use a column of the list", by)
	}
	direction := " DESC"
	if ascending {
		direction = ""
	}
	return " ORDER BY " + column + direction + ", id" + direction, nil
}

// Register announces a server instance.
func (a *Agent) Register(_ context.Context, instance string) (func() error, error) {
	return a.instances.Register(instance)
}

// AwaitEnd returns when an instance is not alive any more.
func (a *Agent) AwaitEnd(ctx context.Context, instance string) error {
	return a.instances.AwaitEnd(ctx, instance)
}

const runningInstances = `SELECT DISTINCT instance FROM runs WHERE status = 'running'`

// Dead returns the instances that hold running runs and are not alive.
func (a *Agent) Dead(ctx context.Context) ([]string, error) {
	ids, err := read(ctx, a.engine, func(c Conn) ([]string, error) { return all(c, scalar[string], runningInstances) })
	if err != nil {
		return nil, err
	}
	dead := []string{}
	for _, id := range ids {
		alive, err := a.instances.Alive(id)
		if err != nil {
			return nil, err
		}
		if !alive {
			dead = append(dead, id)
		}
	}
	return dead, nil
}
