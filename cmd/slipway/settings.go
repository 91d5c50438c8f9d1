package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// settingPrefix begins the environment name of every flag: --public-url is SLIPWAY_PUBLIC_URL.
const settingPrefix = "SLIPWAY_"

// configFileLimit bounds a configuration file, in bytes.
const configFileLimit = 1 << 20

// settings read what is not on the command line from the environment, and what is not there either from a file: one mechanism
// for every flag of a command.
type settings struct {
	flags  *pflag.FlagSet
	getenv func(string) string
	// never are flags that say what this one call does; neither the environment nor a file may.
	never []string
}

// settingsOf are those of a command; its flag "config" names the file.
func settingsOf(cmd *cobra.Command, getenv func(string) string, never ...string) settings {
	return settings{flags: cmd.Flags(), getenv: getenv, never: append(never, "config", "help", "json", "url", "api-key", "tenant")}
}

// environmentName is the name of a flag in the environment.
func environmentName(flag string) string {
	return settingPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// read fills in the flags that are not on the command line.
func (s settings) read() error {
	file, err := s.file()
	if err != nil {
		return err
	}
	var problems []error
	s.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || slices.Contains(s.never, f.Name) {
			return
		}
		if text := s.getenv(environmentName(f.Name)); text != "" {
			problems = append(problems, explain(set(s.flags, f, split(f, text)), environmentName(f.Name)))
		} else if values, ok := file[f.Name]; ok {
			problems = append(problems, explain(set(s.flags, f, values), f.Name+" in "+s.path()))
		}
	})
	return errors.Join(problems...)
}

func explain(err error, place string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", place, err)
}

// split takes a text of the environment apart, at commas, where a flag may be repeated.
func split(f *pflag.Flag, text string) []string {
	if _, list := f.Value.(pflag.SliceValue); !list {
		return []string{text}
	}
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func set(flags *pflag.FlagSet, f *pflag.Flag, values []string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		f.Changed = true
		return list.Replace(values)
	}
	if len(values) != 1 {
		return fmt.Errorf("--%s takes one value, not %d", f.Name, len(values))
	}
	if err := f.Value.Set(values[0]); err != nil {
		return fmt.Errorf("%q is not what --%s takes: %w", values[0], f.Name, err)
	}
	f.Changed = true
	return nil
}

// path is the configuration file, "" for none.
func (s settings) path() string {
	return firstOf(s.flags.Lookup("config").Value.String(), s.getenv(environmentName("config")))
}

// file reads the configuration file: YAML, of which JSON is a part, with a member for each flag by its name.
func (s settings) file() (map[string][]string, error) {
	path := s.path()
	if path == "" {
		return nil, nil
	}
	raw, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w; correct --config", err)
	}
	var members map[string]yaml.Node
	if err := yaml.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("%s is neither YAML nor JSON with a member for each setting: %w", path, err)
	}
	out := make(map[string][]string, len(members))
	for name, node := range members {
		if s.flags.Lookup(name) == nil || slices.Contains(s.never, name) {
			return nil, fmt.Errorf("%s, line %d: %q is no setting; the settings are the flags that --help shows, without the dashes", path, node.Line, name)
		}
		if node.Tag == "!!null" {
			continue // as good as not there
		}
		values, err := scalars(&node)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %s: %w", path, node.Line, name, err)
		}
		out[name] = values
	}
	return out, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, configFileLimit+1))
	if len(raw) > configFileLimit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, configFileLimit)
	}
	return raw, err
}

// scalars are the texts of a value: one, those of a list, or those of an object as name=value.
func scalars(n *yaml.Node) ([]string, error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return []string{n.Value}, nil
	case yaml.SequenceNode:
		return leaves(n.Content, func(i int, text string) string { return text })
	case yaml.MappingNode:
		var names, members []*yaml.Node
		for i := 0; i < len(n.Content); i += 2 {
			names, members = append(names, n.Content[i]), append(members, n.Content[i+1])
		}
		return leaves(members, func(i int, text string) string { return names[i].Value + "=" + text })
	}
	return nil, errors.New("give a text, a number, true or false, or a list of these")
}

func leaves(nodes []*yaml.Node, as func(i int, text string) string) ([]string, error) {
	out := make([]string, 0, len(nodes))
	for i, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			return nil, errors.New("a list holds texts and numbers only")
		}
		out = append(out, as(i, n.Value))
	}
	return out, nil
}

// args are the flags that were set, from wherever, as a command line; but for those named.
func (s settings) args(but ...string) []string {
	var out []string
	s.flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(but, f.Name) || slices.Contains(s.never, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			out = append(out, "--"+f.Name+"="+value)
		}
	})
	return out
}
