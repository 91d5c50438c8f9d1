package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// accessCase is a filter, and whether it allows a document (reference 12).
type accessCase struct {
	filter, doc string
	want        bool
}

func accessCases() []accessCase {
	return []accessCase{
		{`{"owner":"ann"}`, `{"owner":"ann"}`, true},
		{`{"owner":"ann"}`, `{"owner":"Ann"}`, false},
		{`{"owner":"ann"}`, `{}`, false},
		{`{"owner":"ann"}`, `{"owner":["ann"]}`, false},
		{`{"owner":"ann","team":"x"}`, `{"owner":"ann"}`, false},
		{`{"owner":"ann","team":"x"}`, `{"team":"x","owner":"ann","more":1}`, true},
		{`{"owner":{"$eq":"ann"}}`, `{"owner":"ann"}`, true},
		{`{"owner":{"$eq":"ann"}}`, `{"owner":{"$eq":"ann"}}`, false},
		{`{"owner":null}`, `{}`, false},
		{`{"owner":null}`, `{"owner":null}`, true},
		{`{"n":1}`, `{"n":1.0}`, true},
		{`{"n":1}`, `{"n":"1"}`, false},
		{`{"n":1}`, `{"n":true}`, false},
		{`{"n":12345678901234567891}`, `{"n":12345678901234567890}`, false},
		{`{"n":0.1}`, `{"n":0.10000000000000000001}`, false},
		{`{"o":{"a":1}}`, `{"o":{"a":1}}`, true},
		{`{"o":{"a":1}}`, `{"o":{"a":1,"b":2}}`, false},
		{`{"o":{}}`, `{"o":{"a":1}}`, false},
		{`{"o":{}}`, `{"o":{}}`, true},
		{`{"l":["a","b"]}`, `{"l":["a","b"]}`, true},
		{`{"l":["a","b"]}`, `{"l":["b","a"]}`, false},
		{`{"l":{"$contains":"a"}}`, `{"l":["b","a"]}`, true},
		{`{"l":{"$contains":"a"}}`, `{"l":"a"}`, false},
		{`{"l":{"$contains":"a"}}`, `{"l":"abc"}`, false},
		{`{"l":{"$contains":"a"}}`, `{"l":{"a":1}}`, false},
		{`{"l":{"$contains":["a","c"]}}`, `{"l":["c","b","a"]}`, true},
		{`{"l":{"$contains":["a","c"]}}`, `{"l":["a","b"]}`, false},
		{`{"l":{"$contains":[]}}`, `{"l":[]}`, true},
		{`{"l":{"$contains":[{"a":1}]}}`, `{"l":[{"a":1,"b":2}]}`, false},
		{`{"l":{"$eq":["a"],"$contains":"b"}}`, `{"l":["a"]}`, false},
		{`{"$or":[{"owner":"ann"},{"shared":true}]}`, `{"shared":true}`, true},
		{`{"$or":[{"owner":"ann"},{"shared":true}]}`, `{"shared":false,"owner":"bob"}`, false},
		{`{"$or":[]}`, `{"owner":"ann"}`, false},
		{`{"$and":[]}`, `{"owner":"ann"}`, true},
		{`{"$and":[{"owner":"ann"},{"team":"x"}]}`, `{"owner":"ann","team":"y"}`, false},
		{`{"$or":[{"$and":[{"owner":"ann"},{"team":"x"}]},{"shared":true}]}`, `{"owner":"ann","team":"x"}`, true},
		{`{"$and":[{"$or":[{"owner":"ann"},{"owner":"bob"}]}],"team":"x"}`, `{"owner":"bob","team":"x"}`, true},
		{`{"$and":[{"$or":[{"owner":"ann"},{"owner":"bob"}]}],"team":"x"}`, `{"owner":"bob"}`, false},
		{`{"k'?\"":"v'?\"%"}`, `{"k'?\"":"v'?\"%"}`, true},
		{`{"u":"é\ufffd"}`, `{"u":"é\ufffd"}`, true},
	}
}

// accessFilters: databases allow what agent.Filter allows, in every list and count.
func accessFilters(t *testing.T, s agent.Store) {
	ctx := context.Background()
	for i, c := range accessCases() {
		f, err := agent.ParseFilter(raw(c.filter))
		must(t, err)
		what := fmt.Sprintf("filter %s on %s", c.filter, c.doc)
		equal(t, what, f.Allows(raw(c.doc)), c.want)
		want := 0
		if c.want {
			want = 1
		}
		id := fmt.Sprintf("case-%d", i)
		_, err = s.CreateThread(ctx, agent.Thread{ID: id, Metadata: raw(c.doc), CreatedAt: startTime(), UpdatedAt: startTime()}, false)
		must(t, err)
		found, err := s.Threads(ctx, agent.ThreadQuery{IDs: []string{id}, Filter: f})
		must(t, err)
		equal(t, what+": threads", len(found), want)
		_, err = s.StoreBatch(ctx, []agent.StoreOp{{Put: &agent.PutOp{Namespace: []string{id}, Key: "k", Value: raw(c.doc)}}}, startTime())
		must(t, err)
		got, err := s.StoreBatch(ctx, []agent.StoreOp{{Search: &agent.SearchOp{Prefix: []string{id}, Access: f, Limit: 10}}}, startTime())
		must(t, err)
		equal(t, what+": items", len(got[0].Items), want)
	}
}

func filter(t *testing.T, text string) *agent.Filter {
	t.Helper()
	f, err := agent.ParseFilter(raw(text))
	must(t, err)
	return f
}

// accessLists: lists and counts leave out what the filter does not allow, before they are cut into pages.
func accessLists(t *testing.T, s agent.Store) {
	ctx, ann := context.Background(), filter(t, `{"owner":"ann"}`)
	for i, owner := range []string{"ann", "bob", "ann", "bob"} {
		id, metadata := fmt.Sprint(i), raw(`{"owner":"`+owner+`"}`)
		_, err := s.CreateThread(ctx, agent.Thread{ID: id, Metadata: metadata, CreatedAt: startTime(), UpdatedAt: startTime().Add(time.Duration(i))}, false)
		must(t, err)
		_, err = s.CreateAssistant(ctx, agent.Assistant{ID: id, GraphID: "g", Metadata: metadata, CreatedAt: startTime()}, false)
		must(t, err)
		must(t, s.CreateCron(ctx, agent.Cron{ID: id, AssistantID: id, Schedule: "* * * * *", Metadata: metadata, CreatedAt: startTime()}))
	}
	threads, err := s.Threads(ctx, agent.ThreadQuery{Filter: ann, SortBy: "thread_id", Ascending: true, Limit: 1, Offset: 1})
	must(t, err)
	assistants, err := s.Assistants(ctx, agent.AssistantQuery{Filter: ann, SortBy: "assistant_id", Ascending: true, Limit: 1, Offset: 1})
	must(t, err)
	crons, err := s.Crons(ctx, agent.CronQuery{Filter: ann, SortBy: "cron_id", Ascending: true, Limit: 1, Offset: 1})
	must(t, err)
	if len(threads) != 1 || len(assistants) != 1 || len(crons) != 1 {
		t.Fatalf("got %d threads, %d assistants, %d crons; want one of each", len(threads), len(assistants), len(crons))
	}
	equal(t, "second of ann's", threads[0].ID+assistants[0].ID+crons[0].ID, "222")
	n, err := s.CountThreads(ctx, agent.ThreadQuery{Filter: ann})
	must(t, err)
	m, err := s.CountAssistants(ctx, agent.AssistantQuery{Filter: ann})
	must(t, err)
	k, err := s.CountCrons(ctx, agent.CronQuery{Filter: ann})
	must(t, err)
	equal(t, "counts", fmt.Sprint(n, m, k), "2 2 2")
}

// accessRuns: no run gets onto a thread that its filter hides, in whatever way it asks for it, and nothing happens there.
func accessRuns(t *testing.T, s agent.Store) {
	ctx, bob := context.Background(), filter(t, `{"owner":"bob"}`)
	_, err := s.CreateThread(ctx, agent.Thread{ID: "t", Metadata: raw(`{"owner":"ann"}`), CreatedAt: startTime()}, false)
	must(t, err)
	admit(t, s, admission("t", "hers", agent.MultitaskEnqueue, 0))
	for _, m := range []agent.Multitask{agent.MultitaskReject, agent.MultitaskInterrupt, agent.MultitaskRollback, agent.MultitaskEnqueue} {
		a := admission("t", "his-"+string(m), m, 1)
		a.CreateThread, a.Filter = true, bob
		_, err := s.Admit(ctx, a)
		wantCode(t, err, slipway.CodeNotFound)
		_, err = s.AdmitAll(ctx, []agent.Admission{a})
		wantCode(t, err, slipway.CodeNotFound)
	}
	runs, err := s.InFlight(ctx, "t")
	must(t, err)
	if len(runs) != 1 || runs[0].ID != "hers" || runs[0].CancelAction != "" {
		t.Errorf("got %+v, want hers alone and untouched", runs)
	}
	_, err = s.Runs(ctx, agent.RunQuery{ThreadID: "t", Filter: bob})
	wantCode(t, err, slipway.CodeNotFound)
	must(t, s.CreateCron(ctx, agent.Cron{ID: "c", AssistantID: "a", ThreadID: "t", Schedule: "* * * * *", Enabled: true, NextRun: startTime(), CreatedAt: startTime()}))
	hidden := admission("t", "of-his-cron", agent.MultitaskEnqueue, 1)
	hidden.Filter = bob
	admitted, fired, err := s.Fire(ctx, agent.Firing{CronID: "c", Due: startTime(), Next: startTime().Add(time.Hour), Run: &hidden})
	must(t, err)
	if !fired || admitted.Run.ID != "" {
		t.Errorf("a cron on a hidden thread: fired %v with run %q; want the date passed without one", fired, admitted.Run.ID)
	}
	a := admission("new", "his", agent.MultitaskEnqueue, 2)
	a.CreateThread, a.Filter = true, bob
	admit(t, s, a) // a thread that is made has no metadata to match yet
}

// accessItems: one item of the store under a filter (reference 7).
func accessItems(t *testing.T, s agent.Store) {
	ctx, ann, bob := context.Background(), filter(t, `{"owner":"ann"}`), filter(t, `{"owner":"bob"}`)
	do := func(op agent.StoreOp) (agent.StoreResult, error) {
		r, err := s.StoreBatch(ctx, []agent.StoreOp{op}, startTime())
		if err != nil {
			return agent.StoreResult{}, err
		}
		return r[0], nil
	}
	put := func(f *agent.Filter, value string) error {
		_, err := do(agent.StoreOp{Put: &agent.PutOp{Namespace: []string{"n"}, Key: "k", Value: raw(value), Filter: f}})
		return err
	}
	get := func(f *agent.Filter, key string) (agent.StoreResult, error) {
		return do(agent.StoreOp{Get: &agent.GetOp{Namespace: []string{"n"}, Key: key, Filter: f}})
	}
	must(t, put(ann, `{"owner":"ann","v":1}`))
	wantCode(t, put(ann, `{"owner":"bob"}`), slipway.CodeForbidden) // would give it away
	wantCode(t, put(bob, `{"owner":"bob"}`), slipway.CodeForbidden) // would take hers
	wantCode(t, put(bob, `null`), slipway.CodeForbidden)            // would delete hers
	_, err := get(bob, "k")
	wantCode(t, err, slipway.CodeNotFound)
	none, err := get(bob, "absent")
	must(t, err)
	if none.Item != nil {
		t.Errorf("got %+v, want none", none.Item)
	}
	hers, err := get(ann, "k")
	must(t, err)
	equal(t, "hers", string(hers.Item.Value), `{"owner":"ann","v":1}`)
	names, err := do(agent.StoreOp{Namespaces: &agent.NamespacesOp{Access: bob, Limit: 10}})
	must(t, err)
	equal(t, "his namespaces", len(names.Namespaces), 0)
	names, err = do(agent.StoreOp{Namespaces: &agent.NamespacesOp{Access: filter(t, `{"namespace":{"$contains":"n"},"key":"k"}`), Limit: 10}})
	must(t, err)
	if len(names.Namespaces) != 1 || !slices.Equal(names.Namespaces[0], []string{"n"}) {
		t.Errorf("got %v, want [[n]]", names.Namespaces)
	}
	must(t, put(ann, `null`))
	must(t, put(bob, `{"owner":"bob"}`))
}

// goneThreads: who may replay a temporary run is known as long as its frames are kept.
func goneThreads(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admission("temporary", "r", agent.MultitaskEnqueue, 0)
	a.CreateThread, a.ThreadMetadata, a.ClaimFor, a.Run.Temporary, a.Run.Kwargs.Resumable = true, raw(`{"owner":"ann"}`), "i", true, true
	r := admit(t, s, a).Run
	_, err := s.GoneThread(ctx, "r")
	wantCode(t, err, slipway.CodeNotFound)
	id := fmt.Sprintf("%013d-0", startTime().UnixMilli())
	must(t, s.AppendFrames(ctx, []agent.Frame{{RunID: "r", ThreadID: "temporary", Seq: 1, ID: id, Event: "values", Data: raw(`{}`)}}).Wait(ctx))
	finish(t, s, r, agent.RunSuccess, nil)
	gone, err := s.GoneThread(ctx, "r")
	must(t, err)
	equal(t, "thread", gone.ID, "temporary")
	equal(t, "its owner", filter(t, `{"owner":"ann"}`).Allows(gone.Metadata), true)
	must(t, s.DropFrames(ctx, startTime().Add(time.Hour)))
	_, err = s.GoneThread(ctx, "r")
	wantCode(t, err, slipway.CodeNotFound)
}

// accessVectors: the nearest items are the nearest of those that the filter allows.
func accessVectors(t *testing.T, s agent.Store) {
	ctx, ann := context.Background(), filter(t, `{"owner":"ann"}`)
	for i, owner := range []string{"bob", "ann", "bob", "ann"} {
		_, err := s.StoreBatch(ctx, []agent.StoreOp{{Put: &agent.PutOp{
			Namespace: []string{"n"}, Key: fmt.Sprint(i), Value: raw(`{"owner":"` + owner + `"}`), Indexed: "one",
			Vectors: []agent.ItemVector{{Field: "$", Vector: angle(float64(i))}},
		}}}, startTime())
		must(t, err)
	}
	got, err := s.StoreBatch(ctx, []agent.StoreOp{{Search: &agent.SearchOp{Prefix: []string{"n"}, Vector: angle(0), Indexed: "one", Access: ann, Limit: 1}}}, startTime())
	must(t, err)
	if items := got[0].Items; len(items) != 1 || items[0].Key != "1" {
		t.Errorf("got %+v, want the nearer of ann's", items)
	}
}
