package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// The whole table, held against the databases too, is in store/storetest.
func TestFilterAllows(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]bool{
		`{"owner":"ann"}`:                                      true,
		`{"owner":{"$eq":"bob"}}`:                              false,
		`{"team":{"$contains":["b","a"]}}`:                     true,
		`{"team":{"$contains":"c"}}`:                           false,
		`{"$or":[{"owner":"bob"},{"$and":[{"owner":"ann"}]}]}`: true,
		`{"owner":"ann","$or":[]}`:                             false,
		`{"missing":null}`:                                     false,
		`{"n":12345678901234567891}`:                           false,
		`{"n":1.2345678901234567890e19}`:                       true,
	} {
		f, err := agent.ParseFilter(json.RawMessage(filter))
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		if got := f.Allows(json.RawMessage(`{"owner":"ann","team":["a","b"],"n":12345678901234567890}`)); got != want {
			t.Errorf("%s: got %v, want %v", filter, got, want)
		}
	}
}

func TestFilterWithoutConditionsIsNone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `null`, `{}`} {
		f, err := agent.ParseFilter(json.RawMessage(raw))
		if f != nil || err != nil {
			t.Errorf("%q: got %v, %v; want no filter", raw, f, err)
		}
	}
	var none *agent.Filter
	if !none.Allows(json.RawMessage(`{}`)) || !none.AllowsItem(nil, "k", nil) {
		t.Error("no filter must allow everything")
	}
}

func TestFilterThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`[]`, `"a"`, `{`, `{"$not":[]}`, `{"a":{"$ne":1}}`, `{"a":{"$eq":1,"b":2}}`, `{"$or":{"a":1}}`, `{"$or":[1]}`,
		`{"$and":[{"$or":[{"$and":[{"a":1}]}]}]}`, `{"$or":[{"$or":[{"$gt":1}]}]}`,
	} {
		f, err := agent.ParseFilter(json.RawMessage(raw))
		if f != nil || slipway.ErrorCode(err) != slipway.CodeInternal {
			t.Errorf("%s: got %v, %v; want an internal error", raw, f, err)
		}
	}
}

func TestFilterOnItem(t *testing.T) {
	t.Parallel()
	f, err := agent.ParseFilter(json.RawMessage(`{"namespace":{"$contains":"ann"},"key":"k","owner":"ann"}`))
	if err != nil {
		t.Fatal(err)
	}
	value := json.RawMessage(`{"owner":"ann","key":"z","namespace":["ann"]}`)
	if !f.AllowsItem([]string{"ann", "x"}, "k", value) {
		t.Error("the item is the user's own")
	}
	if f.AllowsItem([]string{"bob"}, "k", value) {
		t.Error("a value must not stand in for its namespace")
	}
	if f.AllowsItem([]string{"ann"}, "k", json.RawMessage(`["owner"]`)) || f.AllowsItem([]string{"ann"}, "z", value) {
		t.Error("a value must not stand in for its key, and a list has no members")
	}
}

func TestUserKeepsItsDocument(t *testing.T) {
	t.Parallel()
	const document = `{"identity":"ann","permissions":["a"],"team":{"id":12345678901234567890}}`
	var u agent.User
	if err := json.Unmarshal([]byte(document), &u); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(u)
	if err != nil || string(back) != document || u.Identity != "ann" || string(u.Permissions) != `["a"]` {
		t.Errorf("got %s, %+v, %v", back, u, err)
	}
	for _, bad := range []string{`{}`, `{"identity":1}`, `"ann"`, `null`} {
		if _, err := agent.ParseUser(json.RawMessage(bad)); err == nil {
			t.Errorf("%s: a user without identity was taken", bad)
		}
	}
}
