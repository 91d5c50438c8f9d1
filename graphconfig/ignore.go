package graphconfig

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// alwaysOut are directories that never belong to an application.
func alwaysOut() []string {
	return []string{"__pycache__", ".git", ".venv", "venv", "node_modules", ".tox", ".mypy_cache"}
}

// Ignore says what below one directory does not belong to an application (control-plane reference 7, ignore rules).
type Ignore struct {
	patterns []pattern
	negated  bool // a pattern takes something back in
}

// pattern is one line in the syntax of .gitignore.
type pattern struct {
	form    *regexp.Regexp
	dirOnly bool
	negated bool
}

// ReadIgnore reads the ignore files of a directory: .dockerignore, and for sources outside of git .gitignore after it.
func ReadIgnore(dir fs.FS, names ...string) Ignore {
	var all Ignore
	for _, name := range names {
		raw, err := fs.ReadFile(dir, name)
		if err != nil || len(raw) > maxFile {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(string(raw), "\xef\xbb\xbf")) {
			if p, ok := parsePattern(strings.TrimRight(line, "\r\n")); ok {
				all.patterns = append(all.patterns, p)
				all.negated = all.negated || p.negated
			}
		}
	}
	return all
}

// Match says whether the path, relative to the directory and with slashes, does not belong to the application. The last
// pattern that matches it or a directory above it decides; what is always out stays out.
func (i Ignore) Match(name string, dir bool) bool {
	parts := strings.Split(name, "/")
	for n, part := range parts {
		if slices.Contains(alwaysOut(), part) && (dir || n < len(parts)-1) {
			return true
		}
	}
	for n := len(i.patterns) - 1; n >= 0; n-- {
		if p := i.patterns[n]; p.matches(parts, dir) {
			return !p.negated
		}
	}
	return false
}

// Prune says whether nothing below a directory belongs to the application, so that it need not be read.
func (i Ignore) Prune(name string) bool {
	return slices.Contains(alwaysOut(), path.Base(name)) || !i.negated && i.Match(name, true)
}

func (p pattern) matches(parts []string, dir bool) bool {
	for n := 1; n <= len(parts); n++ {
		if p.dirOnly && !dir && n == len(parts) {
			return false
		}
		if p.form.MatchString(strings.Join(parts[:n], "/")) {
			return true
		}
	}
	return false
}

// parsePattern reads one line; ok is false for comments, empty lines and what is no pattern.
func parsePattern(line string) (p pattern, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.negated, line = true, line[1:]
	}
	line = strings.TrimPrefix(line, "./") // written so in some .dockerignore files
	if p.dirOnly = strings.HasSuffix(line, "/"); p.dirOnly {
		line = strings.TrimRight(line, "/")
	}
	anchored := strings.Contains(line, "/")
	if line = strings.TrimPrefix(line, "/"); line == "" {
		return p, false
	}
	prefix := "^"
	if !anchored {
		prefix = "^(?:.*/)?"
	}
	form, err := regexp.Compile(prefix + expression(line) + "$")
	p.form = form
	return p, err == nil
}

// expression translates a glob: "*" and "?" stop at slashes, "**" between slashes is any number of directories.
func expression(glob string) string {
	var out strings.Builder
	for i := 0; i < len(glob); {
		rest := glob[i:]
		switch {
		case (i == 0 || glob[i-1] == '/') && strings.HasPrefix(rest, "**/"):
			out.WriteString("(?:.*/)?")
			i += 3
		case i > 0 && glob[i-1] == '/' && rest == "**":
			out.WriteString(".+")
			i += 2
		case rest[0] == '*':
			out.WriteString("[^/]*")
			i += len(rest) - len(strings.TrimLeft(rest, "*"))
		case rest[0] == '?':
			out.WriteString("[^/]")
			i++
		case rest[0] == '[' && class(rest) != "":
			text := class(rest)
			out.WriteString(bracket(text))
			i += len(text)
		case rest[0] == '\\' && len(rest) > 1:
			out.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			out.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	return out.String()
}

// class returns the bracket expression at the start of a glob, "" if it does not end.
func class(glob string) string {
	start := 1
	if len(glob) > start && (glob[start] == '!' || glob[start] == '^') {
		start++
	}
	for i := start + 1; i < len(glob); i++ {
		if named := namedClass.FindString(glob[i-1:]); named != "" {
			i += len(named) - 1
		}
		if i < len(glob) && glob[i] == ']' {
			return glob[:i+1]
		}
	}
	return ""
}

// namedClass is a class such as [:alpha:] at the start of a text.
var namedClass = regexp.MustCompile(`^\[:[a-z]+:\]`)

// bracket writes a bracket expression as a regular expression that takes no slash.
func bracket(text string) string {
	inner, not := text[1:len(text)-1], ""
	if inner[0] == '!' || inner[0] == '^' {
		inner, not = inner[1:], "^/"
	}
	escape := strings.NewReplacer(`[`, `\[`, `]`, `\]`, `^`, `\^`)
	var out strings.Builder
	for i := 0; i < len(inner); {
		named := namedClass.FindString(inner[i:])
		out.WriteString(named)
		if i += len(named); named == "" {
			out.WriteString(escape.Replace(inner[i : i+1]))
			i++
		}
	}
	return "[" + not + out.String() + "]"
}

// Excluded lists the files and directories below dir that do not belong to the application, directories without what is in
// them, as paths below files.
func (i Ignore) Excluded(files fs.FS, dir string) ([]string, error) {
	var out []string
	err := fs.WalkDir(files, dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel := name
		if dir != "." {
			rel = strings.TrimPrefix(name, dir+"/")
		}
		switch {
		case e.IsDir() && i.Prune(rel):
			out = append(out, name)
			return fs.SkipDir
		case !e.IsDir() && i.Match(rel, e.Type()&fs.ModeSymlink != 0 && slices.Contains(alwaysOut(), e.Name())):
			out = append(out, name)
		}
		return nil
	})
	return out, err
}
