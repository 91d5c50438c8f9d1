package slipway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FieldChange is one thing that differs between two revisions.
type FieldChange struct {
	Field         string
	Before, After *string // nil = it is not there
}

// Blueprinted is a revision with what else its blueprint comes to.
type Blueprinted struct {
	Revision
	TarballDigest string            // of its uploaded archive
	Secrets       map[string]string // name to a fingerprint that tells values apart and nothing else
	Packages      map[string]string // "python idna" to "3.10"; nil = not known
}

// DiffRevisions says what changed from one revision of a deployment to another: source, configuration, resources, names of
// secrets (never values), artifact and package versions (control-plane reference 10 row 31). Fields come in order.
func DiffRevisions(before, after Blueprinted) ([]FieldChange, error) {
	old, err := before.fields()
	if err != nil {
		return nil, err
	}
	fresh, err := after.fields()
	if err != nil {
		return nil, err
	}
	if before.Packages != nil && after.Packages != nil {
		addPackages(old, before.Packages)
		addPackages(fresh, after.Packages)
	}
	changes := changed(old, fresh)
	for name := range union(before.Secrets, after.Secrets) {
		a, was := before.Secrets[name]
		b, is := after.Secrets[name]
		if was == is && a == b {
			continue
		}
		c := FieldChange{Field: "secrets." + name}
		if was {
			c.Before = word("set")
		}
		if is {
			c.After = word("set")
		}
		if was && is {
			c.After = word("changed")
		}
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b FieldChange) int { return strings.Compare(a.Field, b.Field) })
	return changes, nil
}

func addPackages(fields, packages map[string]string) {
	for name, version := range packages {
		fields["packages."+name] = version
	}
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

func changed(old, fresh map[string]string) (out []FieldChange) {
	for name := range union(old, fresh) {
		a, was := old[name]
		b, is := fresh[name]
		if was == is && a == b {
			continue
		}
		c := FieldChange{Field: name}
		if was {
			c.Before = &a
		}
		if is {
			c.After = &b
		}
		out = append(out, c)
	}
	return out
}

// fields flattens what of a blueprint is shown.
func (b Blueprinted) fields() (map[string]string, error) {
	out := map[string]string{}
	for prefix, part := range map[string]any{
		"source_config": b.SourceConfig, "source_revision_config": b.SourceRevisionConfig,
		"secret_references": b.SecretReferences,
	} {
		raw, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("compare revisions: %w", err)
		}
		var tree any
		if err := json.Unmarshal(raw, &tree); err != nil {
			return nil, fmt.Errorf("compare revisions: %w", err)
		}
		spread(out, prefix, tree)
	}
	for name, value := range map[string]string{
		"source": string(b.Source), "artifact_digest": b.ArtifactDigest, "source_tarball_digest": b.TarballDigest,
		"compute_tier": string(b.ComputeTier), "database_tier": string(b.DatabaseTier),
	} {
		if value != "" {
			out[name] = value
		}
	}
	return out, nil
}

func spread(out map[string]string, at string, tree any) {
	switch v := tree.(type) {
	case nil:
	case map[string]any:
		for name, inner := range v {
			spread(out, at+"."+name, inner)
		}
	case []any:
		for i, inner := range v {
			spread(out, fmt.Sprintf("%s.%d", at, i), inner)
		}
	case string:
		out[at] = v
	default:
		out[at] = fmt.Sprint(v)
	}
}

func word(text string) *string { return &text }
