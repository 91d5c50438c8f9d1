package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sample is a command with one flag of each kind.
type sample struct {
	text   string
	number int
	yes    bool
	period time.Duration
	list   []string
	pairs  []string
}

func sampled(t *testing.T, file string, env map[string]string, line ...string) (sample, settings, error) {
	t.Helper()
	var s sample
	var given settings
	var problem error
	if file != "" {
		path := filepath.Join(t.TempDir(), "slipway.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		line = append(line, "--config", path)
	}
	cmd := &cobra.Command{Use: "sample", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) error {
		given = settingsOf(cmd, func(name string) string { return env[name] }, "now")
		problem = given.read()
		return nil
	}}
	flags := cmd.Flags()
	flags.StringVar(&s.text, "some-text", "default", "")
	flags.IntVar(&s.number, "number", 1, "")
	flags.BoolVar(&s.yes, "yes", false, "")
	flags.DurationVar(&s.period, "period", time.Hour, "")
	flags.StringSliceVar(&s.list, "list", []string{"d"}, "")
	flags.StringArrayVar(&s.pairs, "pair", nil, "")
	flags.Bool("now", false, "")
	flags.String("config", "", "")
	cmd.SetArgs(line)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return s, given, problem
}

func TestSettingsFromLineEnvironmentAndFile(t *testing.T) {
	t.Parallel()
	file := "some-text: file\nnumber: 2\nyes: true\nperiod: 2h\nlist: [f, g]\npair: {\"cn=ops,dc=x\": admin}\n"
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		line []string
		want sample
	}{
		"nothing":              {want: sample{"default", 1, false, time.Hour, []string{"d"}, nil}},
		"file":                 {file: file, want: sample{"file", 2, true, 2 * time.Hour, []string{"f", "g"}, []string{"cn=ops,dc=x=admin"}}},
		"JSON":                 {file: `{"some-text": "file", "number": 2, "list": "one", "yes": null}`, want: sample{"file", 2, false, time.Hour, []string{"one"}, nil}},
		"environment":          {env: map[string]string{"SLIPWAY_SOME_TEXT": "env", "SLIPWAY_LIST": "a, b", "SLIPWAY_PAIR": "x=1,y=2"}, want: sample{"env", 1, false, time.Hour, []string{"a", "b"}, []string{"x=1", "y=2"}}},
		"environment and file": {file: file, env: map[string]string{"SLIPWAY_NUMBER": "3"}, want: sample{"file", 3, true, 2 * time.Hour, []string{"f", "g"}, []string{"cn=ops,dc=x=admin"}}},
		"all three": {
			file: file, env: map[string]string{"SLIPWAY_NUMBER": "3", "SLIPWAY_LIST": "a"}, line: []string{"--number", "4", "--list", "l", "--yes=false"},
			want: sample{"file", 4, false, 2 * time.Hour, []string{"l"}, []string{"cn=ops,dc=x=admin"}},
		},
	} {
		got, given, err := sampled(t, c.file, c.env, c.line...)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
		again, _, err := sampled(t, "", nil, given.args()...)
		if err != nil || !reflect.DeepEqual(again, c.want) {
			t.Errorf("%s: as a command line %q: %+v, %v; want the same", name, given.args(), again, err)
		}
	}
	if _, given, _ := sampled(t, "", map[string]string{"SLIPWAY_NOW": "true"}, "--number", "4"); !slices.Equal(given.args("number"), nil) {
		t.Errorf("args = %q, want none", given.args("number"))
	}
}

func TestSettingsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for mentions, c := range map[string]struct {
		file string
		env  map[string]string
	}{
		`SLIPWAY_NUMBER: "many" is not what --number takes`: {env: map[string]string{"SLIPWAY_NUMBER": "many"}},
		"number in ":                            {file: "number: many"},
		`line 2: "nmber" is no setting`:         {file: "yes: true\nnmber: 2"},
		`"now" is no setting`:                   {file: "now: true"},
		`"config" is no setting`:                {file: "config: x"},
		"--number takes one value, not 2":       {file: "number: [1, 2]"},
		"a list holds texts and numbers only":   {file: "list: [[1]]"},
		"is neither YAML nor JSON":              {file: "- a\n- b"},
		"slipway.yaml has more than 1048576":    {file: "# " + strings.Repeat("x", 1<<20)},
		"cannot read the configuration: open /": {env: map[string]string{"SLIPWAY_CONFIG": "/does/not/exist"}},
	} {
		if _, _, err := sampled(t, c.file, c.env); err == nil || !strings.Contains(err.Error(), mentions) {
			t.Errorf("%v, want an error that mentions %q", err, mentions)
		}
	}
}

// TestEverySettingIsDocumented holds the table of the README against the flags.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| `slipway up` |")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for _, name := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(table, -1) {
		told = append(told, name[1])
	}
	flags := upCommand().Flags()
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(told, f.Name) {
			t.Errorf("the README's table lacks --%s", f.Name)
		}
	})
	for _, name := range told {
		if flags.Lookup(name) == nil && name != "data-dir" {
			t.Errorf("the README's table tells of --%s, which is no flag", name)
		}
	}
}

func TestOIDCSettings(t *testing.T) {
	t.Parallel()
	good := oidcSettings{
		issuer: "https://login.example.com", audiences: []string{"slipway"}, roleClaim: "roles", roleMap: []string{"cn=ops,dc=x=admin"},
		tenantClaim: "groups", tenantMap: []string{"staff=*"},
	}
	c, err := good.config()
	if err != nil || c.Claims.Roles["cn=ops,dc=x"] != "admin" || c.Claims.Tenants["staff"] != "*" {
		t.Fatalf("%+v, %v", c, err)
	}
	if c, err := (&oidcSettings{roleClaim: "roles"}).config(); c != nil || err != nil {
		t.Errorf("without an issuer: %+v, %v; want none", c, err)
	}
	for mentions, change := range map[string]func(*oidcSettings){
		"no --oidc-issuer":                            func(s *oidcSettings) { s.issuer = "" },
		`--oidc-role-map "ops"`:                       func(s *oidcSettings) { s.roleMap = []string{"ops"} },
		`--oidc-role-map says twice what "a" stands`:  func(s *oidcSettings) { s.roleMap = []string{"a=admin", "a=viewer"} },
		`--oidc: role map "a"="root" names no role`:   func(s *oidcSettings) { s.roleMap = []string{"a=root"} },
		"--oidc: audience is missing":                 func(s *oidcSettings) { s.audiences = nil },
		"--oidc: tenant claim or tenant: give one of": func(s *oidcSettings) { s.tenant = "*" },
	} {
		s := good
		change(&s)
		if _, err := s.config(); err == nil || !strings.Contains(err.Error(), mentions) {
			t.Errorf("%v, want an error that mentions %q", err, mentions)
		}
	}
}
