package graphconfig

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rule checks one value of the document and reports what is wrong with it under its key.
type rule func(found *Findings, at string, value any)

// kind names a JSON value for users.
func kind(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return strconv.Quote(cutText(value))
	}
	return cutText(fmt.Sprint(value))
}

func cutText(text string) string {
	if len(text) <= 200 {
		return text
	}
	text = text[:200]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

func needs(what string) func(*Findings, string, any) {
	return func(found *Findings, at string, value any) {
		found.add(at, "%s is %s: it must be %s", at, kind(value), what)
	}
}

// text takes strings.
func text(found *Findings, at string, value any) {
	if _, ok := value.(string); !ok {
		needs("a string in quotes")(found, at, value)
	}
}

// filled takes strings that are not empty.
func filled(found *Findings, at string, value any) {
	if s, ok := value.(string); !ok || strings.TrimSpace(s) == "" {
		needs("a string that is not empty")(found, at, value)
	}
}

// flag takes true and false.
func flag(found *Findings, at string, value any) {
	if _, ok := value.(bool); !ok {
		needs("true or false, without quotes")(found, at, value)
	}
}

// number takes finite numbers above low.
func number(low float64) rule {
	return func(found *Findings, at string, value any) {
		n, ok := value.(json.Number)
		if f, err := n.Float64(); !ok || err != nil || f <= low {
			needs(fmt.Sprintf("a number above %v", low))(found, at, value)
		}
	}
}

// whole takes whole numbers between both bounds.
func whole(low, high int64) rule {
	return func(found *Findings, at string, value any) {
		n, ok := value.(json.Number)
		if i, err := n.Int64(); !ok || err != nil || i < low || i > high {
			needs(fmt.Sprintf("a whole number from %d to %d", low, high))(found, at, value)
		}
	}
}

// oneOf takes one of the words.
func oneOf(words ...string) rule {
	return func(found *Findings, at string, value any) {
		if s, ok := value.(string); !ok || !slices.Contains(words, s) {
			what := "one of " + strings.Join(words, ", ")
			if near := Nearest(s, words); near != "" {
				what += fmt.Sprintf("; did you mean %q?", near)
			}
			needs(what)(found, at, value)
		}
	}
}

// list takes arrays of what the rule takes.
func list(of rule) rule {
	return func(found *Findings, at string, value any) {
		all, ok := value.([]any)
		if !ok {
			needs("an array in []")(found, at, value)
		}
		for i, one := range all {
			of(found, fmt.Sprintf("%s[%d]", at, i), one)
		}
	}
}

// anyObject takes objects.
func anyObject(found *Findings, at string, value any) {
	if _, ok := value.(map[string]any); !ok {
		needs("an object in {}")(found, at, value)
	}
}

// object takes objects whose known members the rules take; others pass, and null counts as absent.
func object(members map[string]rule) rule {
	return func(found *Findings, at string, value any) {
		anyObject(found, at, value)
		all, _ := value.(map[string]any)
		for _, name := range slices.Sorted(mapKeys(all)) {
			if check := members[name]; check != nil && all[name] != nil {
				check(found, at+"."+name, all[name])
			}
		}
	}
}

// mapOf takes objects all of whose members the rule takes.
func mapOf(of rule) rule {
	return func(found *Findings, at string, value any) {
		anyObject(found, at, value)
		all, _ := value.(map[string]any)
		for _, name := range slices.Sorted(mapKeys(all)) {
			of(found, at+"."+name, all[name])
		}
	}
}

// either takes what one of the rules takes; what says it in words.
func either(what string, rules ...rule) rule {
	return func(found *Findings, at string, value any) {
		for _, r := range rules {
			var tried Findings
			if r(&tried, at, value); len(tried) == 0 {
				return
			}
		}
		needs(what)(found, at, value)
	}
}

// relative takes paths below or beside the configuration, without a host or a root.
func relative(found *Findings, at string, value any) {
	filled(found, at, value)
	if s, _ := value.(string); path.IsAbs(slashed(s)) || driveForm.MatchString(s) || strings.ContainsRune(s, 0) {
		found.add(at, "%s is %q: write the path relative to this file", at, s)
	}
}

// located takes "<path or module>:<attribute>".
func located(example string) rule {
	return func(found *Findings, at string, value any) {
		s, ok := value.(string)
		if !ok {
			needs("a string such as "+strconv.Quote(example))(found, at, value)
			return
		}
		checkSpec(found, at, s, example)
	}
}

// matching takes strings of a form.
func matching(form *regexp.Regexp, what string) rule {
	return func(found *Findings, at string, value any) {
		if s, ok := value.(string); !ok || !form.MatchString(s) {
			needs(what)(found, at, value)
		}
	}
}
