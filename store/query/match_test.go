package query_test

import (
	"testing"

	"github.com/slipway-dev/slipway/store/query"
)

func TestContains(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		doc, want string
		contained bool
	}{
		{`{"a":1,"b":2}`, `{"a":1}`, true},
		{`{"a":1}`, `{"a":1.0}`, true},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":1}`, `{"a":true}`, false},
		{`{"a":null}`, `{"a":null}`, true},
		{`{}`, `{"a":null}`, false},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"c":2}}`, true},
		{`{"a":[3,2,1]}`, `{"a":[1,1,3]}`, true},
		{`{"a":[1]}`, `{"a":1}`, false},
		{`{"a":[{"b":1,"c":2}]}`, `{"a":[{"b":1}]}`, true},
		{`[]`, `{}`, false},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`, false},
	} {
		if got := query.Contains(test.doc, test.want); got != test.contained {
			t.Errorf("Contains(%s, %s) = %v, want %v", test.doc, test.want, got, test.contained)
		}
	}
}
