package slipway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/slipway-dev/slipway"

// group is a storey of the house: which rooms it has and what they may import (ARCHITECTURE.md, "The house").
type group struct {
	name  string
	rooms []string // top-level directories; "." is the root package
	// imports lists the groups whose rooms may be imported, besides the room's own sub-rooms.
	imports []string
	// drivers lists, per room, the third-party modules it may use; "*" means every room of the group.
	drivers map[string][]string
}

var house = []group{
	{name: "ground", rooms: []string{".", "agent", "beacon", "plan"}, imports: []string{"ground"}},
	// The grammar of the configuration file: ground that the command line may use too, which knows the service only by its API.
	{name: "grammar", rooms: []string{"graphconfig"}, imports: []string{"ground"}},
	{
		name: "first floor", rooms: []string{"control", "builder", "listener", "engine", "intake"}, imports: []string{"ground", "grammar"},
		drivers: map[string][]string{"*": {"golang.org/x/sync"}},
	},
	// What adapters that start other people's programs stand on: it knows processes, and nothing of the platform.
	{name: "keeper", rooms: []string{"keeper"}},
	{
		name: "adapters",
		rooms: []string{
			"store", "bus", "blob", "source", "image", "toolchain", "runtime", "worker", "githost", "seal", "telemetry", "gateway", "webhook", "schedule",
			"oidc", "feedback", "shelf", "workers", "templates",
		},
		imports: []string{"ground", "grammar", "keeper"},
		drivers: map[string][]string{
			"store":     {"modernc.org/sqlite", "github.com/pressly/goose/v3", "github.com/jackc/pgx/v5"},
			"image":     {"github.com/google/go-containerregistry"},
			"source":    {"golang.org/x/text"},
			"runtime":   {"golang.org/x/sys"},
			"oidc":      {"github.com/coreos/go-oidc/v3", "github.com/go-jose/go-jose/v4"},
			"worker":    {"golang.org/x/sys"},
			"bus":       {"golang.org/x/sys"},
			"schedule":  {"github.com/netresearch/go-cron"},
			"toolchain": {"github.com/BurntSushi/toml", "golang.org/x/sys"},
		},
	},
	{
		name: "edges", rooms: []string{"api", "web"}, imports: []string{"ground", "first floor"},
		drivers: map[string][]string{
			"*":   {"github.com/danielgtaylor/huma/v2"},
			"api": {"github.com/coder/websocket", "go.opentelemetry.io/collector/pdata", "github.com/prometheus/client_golang"},
		},
	},
	{name: "client", rooms: []string{"client"}},
	{name: "remote feed", rooms: []string{"feed"}, imports: []string{"ground", "client"}},
	{
		name: "cli", rooms: []string{"cli"}, imports: []string{"client", "grammar"},
		drivers: map[string][]string{"*": {
			"github.com/spf13/cobra", "github.com/charmbracelet/lipgloss", "golang.org/x/term",
		}},
	},
	{
		name: "roof", rooms: []string{"cmd"}, imports: []string{"ground", "grammar", "first floor", "keeper", "adapters", "edges", "client", "remote feed", "cli"},
		drivers: map[string][]string{"*": {"github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml/v3", "github.com/google/uuid", "golang.org/x/sync", "golang.org/x/sys"}},
	},
	{
		name: "garden", rooms: []string{"e2e", "robust", "bench"},
		imports: []string{"ground", "grammar", "first floor", "keeper", "adapters", "edges", "client", "remote feed", "cli", "roof"},
		drivers: map[string][]string{"*": {"github.com/rogpeppe/go-internal", "golang.org/x/sys", "golang.org/x/crypto", "github.com/google/uuid"}},
	},
}

// pkg is what `go list` tells of one package.
type pkg struct {
	ImportPath, Dir string
	Imports         []string
	GoFiles         []string
	Standard        bool
	DepOnly         bool
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// room returns the top-level directory of a package of this module, "." for the root.
func room(importPath string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	if rest == "" {
		return "."
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

func groupOf(name string) (group, bool) {
	for _, g := range house {
		if slices.Contains(g.rooms, name) {
			return g, true
		}
	}
	return group{}, false
}

func ours(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// refusal says why a package may not import another, "" if it may.
func refusal(from, to string) string {
	home := room(from)
	g, ok := groupOf(home)
	switch {
	case !ok:
		return "the room " + home + " is not in the table of this test"
	case standard(to):
		return ""
	case !ours(to):
		for _, allowed := range append(slices.Clone(g.drivers["*"]), g.drivers[home]...) {
			if to == allowed || strings.HasPrefix(to, allowed+"/") {
				return ""
			}
		}
		return g.name + " may not use this module here"
	case room(to) == home:
		return ""
	}
	target, _ := groupOf(room(to))
	if slices.Contains(g.imports, target.name) {
		return ""
	}
	return fmt.Sprintf("%s may not import %s", g.name, target.name)
}

func TestDependencyRule(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			if why := refusal(p.ImportPath, to); why != "" {
				t.Errorf("%s → %s → %s", p.ImportPath, to, why)
			}
		}
	}
}

func TestDependencyRuleCatchesViolations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to string }{
		{module, "github.com/google/uuid"},
		{module + "/control", module + "/store/sqlite"},
		{module + "/store/sqlite", module + "/control"},
		{module + "/bus/local", module + "/store/query"},
		{module + "/api/agentapi", module + "/store/sqlite"},
		{module + "/cli", module + "/control"},
		{module + "/client", module},
		{module + "/attic", "fmt"},
	} {
		if refusal(test.from, test.to) == "" {
			t.Errorf("%s → %s is not refused", test.from, test.to)
		}
	}
}

// source parses the non-test files of a package.
func source(t *testing.T, p pkg) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = f
	}
	return files
}

func TestEveryPackageHasOneComment(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		var with []string
		for path, f := range source(t, p) {
			if f.Doc != nil {
				with = append(with, filepath.Base(path))
			}
		}
		if len(with) != 1 {
			t.Errorf("%s has a package comment in %v, want exactly one file", p.ImportPath, with)
		}
	}
}

func TestNoInitAndNoGlobalState(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for path, f := range source(t, p) {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: init() is not used in this house", path)
				}
				if gen, ok := d.(*ast.GenDecl); ok && gen.Tok == token.VAR {
					for _, name := range stateful(gen) {
						t.Errorf("%s: package variable %s is neither an error, a regular expression, an embed.FS, a table nor an assertion", path, name)
					}
				}
			}
		}
	}
}

// stateful returns the names of a var declaration that could hold state. `version` is the linker's.
func stateful(gen *ast.GenDecl) []string {
	var names []string
	for _, spec := range gen.Specs {
		v := spec.(*ast.ValueSpec)
		embedded := gen.Doc != nil && strings.Contains(text(gen.Doc), "//go:embed") || v.Doc != nil && strings.Contains(text(v.Doc), "//go:embed")
		for i, name := range v.Names {
			if name.Name == "_" || name.Name == "version" || embedded || i < len(v.Values) && constant(v.Values[i]) {
				continue
			}
			names = append(names, name.Name)
		}
	}
	return names
}

func text(g *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range g.List {
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

// constant says whether an initialiser makes a value that is meant never to change: a table, an error, a pattern.
func constant(e ast.Expr) bool {
	switch v := e.(type) {
	case *ast.CompositeLit:
		return true
	case *ast.UnaryExpr:
		return constant(v.X)
	case *ast.CallExpr:
		s, ok := v.Fun.(*ast.SelectorExpr)
		if !ok {
			id, ok := v.Fun.(*ast.Ident)
			return ok && (id.Name == "Errorf")
		}
		x, _ := s.X.(*ast.Ident)
		if x == nil {
			return false
		}
		return slices.Contains([]string{"errors.New", "fmt.Errorf", "slipway.Errorf", "regexp.MustCompile", "uuid.MustParse"}, x.Name+"."+s.Sel.Name)
	}
	return false
}

func TestGroundHasNoClockAndNoChance(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if g, _ := groupOf(room(p.ImportPath)); g.name != "ground" && g.name != "grammar" {
			continue
		}
		for _, banned := range []string{"math/rand", "math/rand/v2", "crypto/rand", "net/http", "os", "os/exec", "database/sql"} {
			if slices.Contains(p.Imports, banned) {
				t.Errorf("%s imports %s: the ground does no I/O and draws no random numbers", p.ImportPath, banned)
			}
		}
		for path, f := range source(t, p) {
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep"}, s.Sel.Name) {
						t.Errorf("%s uses time.%s: times come in as arguments", path, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

func TestSQLOnlyInStoreQuery(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.ImportPath == module+"/store/query" || !slices.Contains(p.Imports, "database/sql") {
			continue
		}
		if !strings.HasPrefix(p.ImportPath, module+"/store/") {
			t.Errorf("%s imports database/sql: all SQL lives in store/query", p.ImportPath)
		}
	}
}

func TestNoReplaceInGoMod(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod: %s", line)
		}
	}
}
