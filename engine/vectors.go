package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	// embedTexts and embedBytes bound what one question to the embedding function holds; a single longer text goes alone.
	embedTexts = 128
	embedBytes = 1 << 20
	// embedLimit is how long the embedding function may take for one question.
	embedLimit = time.Minute
	// indexPage is how many items are indexed anew at once.
	indexPage = 64
	// indexPause is how long indexing waits after a failure, at first; it doubles up to indexPauseMax.
	indexPause    = 5 * time.Second
	indexPauseMax = 5 * time.Minute
)

// StoreBatch runs operations of the key-value store in order (reference 7, 15), for clients and for graphs. Where there is an
// index the embedding function is asked before, once for all texts of the batch. If it fails the items are stored all the
// same: the error is CodeUnavailable and tells so, and they are indexed later.
func (e *Engine) StoreBatch(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreResult, error) {
	ops = e.cfg.Items.Apply(ops)
	if e.hasPart(agent.PartStore) {
		return e.customBatch(ctx, ops)
	}
	ops, unembedded := e.embedOps(ctx, ops)
	if errors.Is(unembedded, errFields) {
		return nil, unembedded
	}
	results, err := e.store.StoreBatch(ctx, ops, e.clock())
	if err != nil {
		return nil, err
	}
	if unembedded != nil {
		wakeLoop(e.indexKick)
		return nil, unembedded
	}
	return results, nil
}

// errFields marks an operation whose paths cannot be read.
var errFields = errors.New("bad paths")

// embedOps gives puts and searches their vectors, if there is an index.
func (e *Engine) embedOps(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreOp, error) {
	if e.cfg.Index == nil {
		return ops, nil
	}
	index := *e.cfg.Index
	var texts textSet
	pieces := make([][]agent.Text, len(ops))
	for i, op := range ops {
		switch {
		case op.Put != nil && !absent(op.Put.Value):
			var err error
			if pieces[i], err = index.Texts(op.Put.Value, op.Put.Index); err != nil {
				return nil, slipway.Errorf(slipway.CodeInvalid, "index: %w", errors.Join(err, errFields))
			}
			texts.add(pieces[i]...)
		case op.Search != nil && op.Search.Query != "":
			texts.add(agent.Text{Text: op.Search.Query})
		}
	}
	if err := e.embed(ctx, &texts); err != nil {
		return ops, slipway.Errorf(slipway.CodeUnavailable,
			"the embedding function of store.index failed: %w; items that were put are stored and will be indexed later", err)
	}
	return withVectors(ops, pieces, &texts, index.Name()), nil
}

// withVectors returns the operations with what the texts became.
func withVectors(ops []agent.StoreOp, pieces [][]agent.Text, texts *textSet, index string) []agent.StoreOp {
	out := make([]agent.StoreOp, len(ops))
	for i, op := range ops {
		switch {
		case op.Put != nil && !absent(op.Put.Value):
			put := *op.Put
			put.Indexed, put.Vectors = index, texts.vectorsOf(pieces[i])
			op.Put = &put
		case op.Search != nil && op.Search.Query != "":
			search := *op.Search
			search.Indexed, search.Vector = index, texts.vectors[texts.at[op.Search.Query]]
			op.Search = &search
		}
		out[i] = op
	}
	return out
}

// textSet is a set of texts with their unit vectors.
type textSet struct {
	list    []string
	at      map[string]int
	vectors [][]float32
}

func (s *textSet) add(texts ...agent.Text) {
	if s.at == nil {
		s.at = map[string]int{}
	}
	for _, t := range texts {
		if _, known := s.at[t.Text]; !known {
			s.at[t.Text] = len(s.list)
			s.list = append(s.list, t.Text)
		}
	}
}

func (s *textSet) vectorsOf(texts []agent.Text) []agent.ItemVector {
	vectors := make([]agent.ItemVector, 0, len(texts))
	for _, t := range texts {
		vectors = append(vectors, agent.ItemVector{Field: t.Field, Vector: s.vectors[s.at[t.Text]]})
	}
	return vectors
}

// embed asks the application for the vectors of all texts, a bounded number at a time.
func (e *Engine) embed(ctx context.Context, s *textSet) error {
	for rest := s.list; len(rest) > 0; {
		n, size := 0, 0
		for n < len(rest) && n < embedTexts && (n == 0 || size+len(rest[n]) <= embedBytes) {
			size += len(rest[n])
			n++
		}
		vectors, err := e.embedOnce(ctx, rest[:n])
		if err != nil {
			return err
		}
		for _, v := range vectors {
			s.vectors = append(s.vectors, agent.Unit(v))
		}
		rest = rest[n:]
	}
	return nil
}

func (e *Engine) embedOnce(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, embedLimit)
	defer cancel()
	w, err := e.partWorker(ctx, agent.PartEmbed)
	if err != nil {
		return nil, err
	}
	vectors, err := agent.Embed(ctx, w, texts)
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if len(v) != e.cfg.Index.Dims {
			return nil, fmt.Errorf("it returned a vector of %d numbers where store.index.dims is %d", len(v), e.cfg.Index.Dims)
		}
	}
	return vectors, nil
}

// indexLoop indexes what has no vectors for the index: at the start, after failures, and when another instance is gone. As
// long as an instance with another index lives, which may be the one in service, everything stays as it is.
func (e *Engine) indexLoop(ctx context.Context) {
	pause := indexPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.indexKick:
		}
		if e.indexedOtherwise() {
			continue
		}
		err := e.indexAll(ctx)
		if err == nil {
			pause = indexPause
			continue
		}
		if ctx.Err() == nil {
			e.log.Error("indexing items of the store failed", "error", err)
			time.AfterFunc(pause, func() { wakeLoop(e.indexKick) })
			pause = min(2*pause, indexPauseMax)
		}
	}
}

// indexAll goes through all items without vectors; those that cannot be embedded do not keep others from it.
func (e *Engine) indexAll(ctx context.Context) error {
	var behind *agent.Unindexed
	var failed error
	for ctx.Err() == nil {
		page, err := e.store.Unindexed(ctx, e.cfg.Index.Name(), behind, indexPage, e.clock())
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return failed
		}
		if err := e.indexItems(ctx, page); err != nil {
			failed = err
			if err := e.indexOneByOne(ctx, page); err != nil {
				return err
			}
		}
		behind = &page[len(page)-1]
	}
	return ctx.Err()
}

// indexOneByOne finds the items of a page that can be indexed. If none can, it is not for them that it fails.
func (e *Engine) indexOneByOne(ctx context.Context, page []agent.Unindexed) error {
	good := 0
	var failed error
	for i := range page {
		if err := e.indexItems(ctx, page[i:i+1]); err != nil {
			failed = err
			if good == 0 && i >= 2 {
				return failed
			}
			continue
		}
		good++
	}
	return nil
}

func (e *Engine) indexItems(ctx context.Context, items []agent.Unindexed) error {
	var texts textSet
	pieces := make([][]agent.Text, len(items))
	for i, item := range items {
		pieces[i], _ = e.cfg.Index.Texts(item.Value, item.Fields) // what was put without an index may name bad paths
		texts.add(pieces[i]...)
	}
	if err := e.embed(ctx, &texts); err != nil {
		return err
	}
	for i := range items {
		items[i].Vectors = texts.vectorsOf(pieces[i])
	}
	return e.store.IndexItems(ctx, e.cfg.Index.Name(), items)
}

// indexName is what instances tell each other of their index.
func (c Config) indexName() string {
	if c.Index == nil {
		return ""
	}
	return c.Index.Name()
}

// noteIndex remembers whether another instance has another index.
func (e *Engine) noteIndex(n note) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n.Index != "" && n.Index != e.cfg.indexName() {
		e.indexes[n.From] = struct{}{}
	}
}

func (e *Engine) indexedOtherwise() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.indexes) > 0
}
