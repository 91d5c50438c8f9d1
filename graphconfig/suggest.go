package graphconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

func knownKeys() []string {
	return []string{
		"graphs", "dependencies", "env", "python_version", "node_version", "api_version", "base_image", "image_distro",
		"pip_config_file", "pip_installer", "source", "dockerfile_lines", "store", "checkpointer", "auth", "encryption", "http",
		"webhooks", "ui", "ui_config", "keep_pkg_tools", "_INTERNAL_docker_tag", "disable_persistence", "$schema",
	}
}

func warnings(keys map[string]json.RawMessage) []string {
	var all []string
	for key := range keys {
		if slices.Contains(knownKeys(), key) {
			continue
		}
		text := fmt.Sprintf("the key %q is unknown and ignored", key)
		if near := Nearest(key, knownKeys()); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		all = append(all, text)
	}
	sort.Strings(all)
	return all
}

// Nearest returns the candidate that a mistyped word most likely meant, "" if none is near.
func Nearest(word string, candidates []string) string {
	best, bound := "", len(word)/3+2
	for _, c := range candidates {
		if d := distance(word, c); d < bound {
			best, bound = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
