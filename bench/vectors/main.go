// Command vectors measures searches of the store by likeness on SQLite: how long one search takes over so many items, in all
// of them and in a tenth. It prints a table and one JSON line per figure; nothing here asserts a time.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// figure is one measured time.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// settings of a run.
type settings struct{ items, dims, rounds int }

func main() {
	var s settings
	flag.IntVar(&s.items, "items", 100_000, "items")
	flag.IntVar(&s.dims, "dims", 384, "numbers per vector")
	flag.IntVar(&s.rounds, "rounds", 7, "searches; medians are reported")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	dir, err := os.MkdirTemp("", "slipway-vectors-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.OpenAgent(filepath.Join(dir, "agent.db"))
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	random := rand.New(rand.NewSource(1))
	begun := time.Now()
	if err := s.fill(store, random); err != nil {
		return err
	}
	s.tell("put, per item", time.Since(begun)/time.Duration(s.items))
	for name, prefix := range map[string][]string{"search, all items": {"all"}, "search, a tenth": {"all", "3"}} {
		took, err := s.search(store, random, prefix)
		if err != nil {
			return err
		}
		s.tell(name, took)
	}
	return nil
}

func (s settings) vector(random *rand.Rand) []float32 {
	v := make([]float32, s.dims)
	for i := range v {
		v[i] = random.Float32() - 0.5
	}
	return agent.Unit(v)
}

func (s settings) fill(store agent.Store, random *rand.Rand) error {
	const batch = 500
	for first := 0; first < s.items; first += batch {
		ops := make([]agent.StoreOp, 0, batch)
		for n := first; n < min(first+batch, s.items); n++ {
			ops = append(ops, agent.StoreOp{Put: &agent.PutOp{
				Namespace: []string{"all", strconv.Itoa(n % 10)}, Key: strconv.Itoa(n), Value: json.RawMessage(`{"text":"measured"}`),
				Indexed: "bench", Vectors: []agent.ItemVector{{Field: "$", Vector: s.vector(random)}},
			}})
		}
		if _, err := store.StoreBatch(context.Background(), ops, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (s settings) search(store agent.Store, random *rand.Rand, prefix []string) (time.Duration, error) {
	took := make([]time.Duration, 0, s.rounds)
	for range s.rounds {
		op := &agent.SearchOp{Prefix: prefix, Limit: 10, Vector: s.vector(random), Indexed: "bench"}
		begun := time.Now()
		if _, err := store.StoreBatch(context.Background(), []agent.StoreOp{{Search: op}}, begun); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func (s settings) tell(name string, took time.Duration) {
	f := figure{Name: fmt.Sprintf("%s (%d items of %d numbers)", name, s.items, s.dims), Value: float64(took.Microseconds()) / 1000, Unit: "ms"}
	line, _ := json.Marshal(f) // always marshals
	fmt.Printf("%-60s %10.3f ms\n%s\n", f.Name, f.Value, line)
}
