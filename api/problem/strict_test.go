package problem_test

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/problem"
)

func TestWhatADecoderWouldTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"plain", `{"a":1,"b":[{"a":1},{"a":2}],"c":{"a":"a","b":"a"}}`, true},
		{"the same name in an inner object", `{"a":{"a":{"a":[]}}}`, true},
		{"a value that looks like a name", `{"a":"b","b":["a","a"]}`, true},
		{"twice", `{"a":1,"a":2}`, false},
		{"twice, far apart", `{"a":{"x":[1,{}]},"b":[[]],"a":null}`, false},
		{"twice, inside", `[{"x":{"a":1,"b":2,"a":3}}]`, false},
		{"twice, escaped", `{"a":1,"\u0061":2}`, false},
		{"deep enough", strings.Repeat("[", 100) + strings.Repeat("]", 100), true},
		{"too deep", strings.Repeat("[", 101) + strings.Repeat("]", 101), false},
		{"long enough", "[" + strings.Repeat("1,", 19_999) + "1]", true},
		{"too long", "[" + strings.Repeat("1,", 20_000) + "1]", false},
		{"too long and never closed", "[" + strings.Repeat("[],", 1_000_000), false},
		{"too many", "[" + strings.Repeat("["+strings.Repeat("1,", 9_999)+"1],", 30) + "1]", false},
		{"too deep and never closed", strings.Repeat(`{"a":`, 9000), false},
	} {
		var got any
		if err := problem.Format().Unmarshal([]byte(c.text), &got); err != nil {
			t.Errorf("%s: %v, want it to be a matter of validation", c.name, err)
		}
		_, object := got.(map[string]any)
		_, list := got.([]any)
		if (object || list) != c.ok {
			t.Errorf("%s: %T, taken = %v, want %v", c.name, got, object || list, c.ok)
		}
	}
}
