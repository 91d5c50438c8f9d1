package robust_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What each durability promises when a server is killed with kill -9 in the midst of a run, in both languages and on both
// databases: every one ends with each step counted once; sync repeats nothing but the step that was under way, async that
// and steps whose checkpoints were still on their way, and exit, which has no checkpoint before the end, starts over.
func TestWhatDurabilityPromisesAfterAKill(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, both, func(t *testing.T, f *fleet) {
		first := f.start()
		logs, runs := map[string]string{}, map[string]acknowledged{}
		for _, durability := range []string{"sync", "async", "exit"} {
			logs[durability] = filepath.Join(t.TempDir(), "log")
			a, err := first.logged(8, 250, logs[durability], durability)
			if err != nil {
				t.Fatal(err)
			}
			runs[durability] = a
		}
		for _, log := range logs {
			if err := eventually(func() error { return reached(log, 4) }); err != nil {
				t.Fatal(err)
			}
		}
		first.kill()
		second := f.start()
		for durability, a := range runs {
			if err := second.whole(a); err != nil {
				t.Errorf("%s: %v", durability, err)
			}
		}
		if n := len(steps(t, logs["sync"])); n > 8+1 {
			t.Errorf("sync: %d steps ran for 8; at most the one under way may run again", n)
		}
		if s := steps(t, logs["exit"]); strings.Count(strings.Join(s, " "), "0") != 2 {
			t.Errorf("exit: got the steps %v, want it to have started over", s)
		}
	})
}

// logged makes a run whose steps write their numbers to a file.
func (m *member) logged(total, pause int, log, durability string) (acknowledged, error) {
	input := fmt.Sprintf(`{"total":%d,"pause":%d,"log":%q}`, total, pause, log)
	return m.begin(input, total, `,"durability":"`+durability+`"`)
}

// reached says whether a step has begun.
func reached(log string, step int) error {
	raw, err := os.ReadFile(log)
	if err == nil && !strings.Contains(string(raw), fmt.Sprintf(" %d\n", step)) {
		err = fmt.Errorf("step %d has not begun", step)
	}
	return err
}

// steps returns the numbers of the steps that ran, in their order.
func steps(t *testing.T, log string) (numbers []string) {
	t.Helper()
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(raw)) {
		if len(line) < 3 { // the other fields are ids of runs
			numbers = append(numbers, line)
		}
	}
	return numbers
}
