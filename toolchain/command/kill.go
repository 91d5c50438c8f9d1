package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// markOf begins the mark in the environment of every command of a data directory.
func markOf(root string) string { return "SLIPWAY_BUILD=" + root + "#" }

// Reap kills what the commands of an earlier process on the same data directory left running, where the system shows
// processes' environments; keepers carry no mark and end what they keep themselves. No command of the directory may be
// wanted any more.
func Reap(root string) { end(markOf(root)) }

// end kills whatever carries the mark. It goes on until nothing is left, so that a process that forks meanwhile is caught too.
func end(mark string) {
	for range 20 {
		left := marked(mark)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// marked lists the living processes whose environment holds the mark.
func marked(mark string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, file := range files {
		raw, err := os.ReadFile(file) // empty for those that have ended
		if err != nil || !bytes.Contains(raw, []byte(mark)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
