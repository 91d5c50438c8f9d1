package slipway

import (
	"regexp"
	"sort"
)

var envNameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ReservedSecret says whether the platform injects the variable itself, so that no secret may bear its name
// (control-plane reference 8). Deployments of source external_container may set more of them.
func ReservedSecret(name string, source Source) bool {
	switch name {
	case "LANGCHAIN_TRACING_V2", "LANGCHAIN_ENDPOINT", "LANGCHAIN_PROJECT", "LANGCHAIN_API_KEY", "LANGCHAIN_CALLBACKS_BACKGROUND",
		"LANGSMITH_TRACING_V2", "LANGSMITH_PROJECT", "LANGSMITH_LANGGRAPH_GIT_REPO", "LANGSMITH_LANGGRAPH_GIT_REF",
		"LANGSMITH_LANGGRAPH_GIT_REF_SHA", "LANGSMITH_CONTROL_PLANE_API_KEY", "LANGSMITH_AUTH_ENDPOINT", "LANGSMITH_TENANT_ID",
		"LANGSMITH_AUTH_VERIFY_TENANT_ID", "LANGSMITH_HOST_PROJECT_ID", "LANGSMITH_HOST_PROJECT_NAME",
		"LANGSMITH_HOST_REVISION_ID", "LANGSMITH_DEPLOYMENT_NAME",
		"LANGGRAPH_GIT_REPO_PATH", "LANGGRAPH_AUTH_TYPE", "LANGGRAPH_CLOUD_LICENSE_KEY",
		"POSTGRES_URI", "POSTGRES_PASSWORD", "DATABASE_URI", "REDIS_URI", "LOG_JSON", "LOG_DICT_TRACEBACKS",
		"DD_TRACE_PSYCOPG_ENABLED", "DD_TRACE_REDIS_ENABLED":
		return true
	case "LANGSMITH_API_KEY", "LANGSMITH_ENDPOINT", "POSTGRES_URI_CUSTOM", "REDIS_URI_CUSTOM", "PATH", "PORT", "MOUNT_PREFIX",
		"LSD_ENV", "LSD_DD_API_KEY", "LSD_DD_ENDPOINT", "LSD_DEPLOYMENT_TYPE":
		return source != SourceExternalContainer
	}
	return false
}

// validateSecrets checks a full list of secrets (spec 2.5); stored are the names whose value the mask may keep.
func validateSecrets(problems *Problems, source Source, secrets []Secret, stored []string) {
	if len(secrets) > MaxSecrets {
		problems.Add(at("secrets"), "%d secrets are too many; use at most %d", len(secrets), MaxSecrets)
		return
	}
	seen := map[string]bool{}
	for i, s := range secrets {
		validateSecretName(problems, at("secrets", i, "name"), s.Name, source)
		if seen[s.Name] {
			problems.Add(at("secrets", i, "name"), "secret %q is given twice; keep one", s.Name)
		}
		seen[s.Name] = true
		switch {
		case len(s.Value) > MaxSecretValue:
			problems.Add(at("secrets", i, "value"), "the value of secret %q has %d bytes; use at most %d", s.Name, len(s.Value), MaxSecretValue)
		case s.Value == MaskedSecret && !has(stored, s.Name):
			problems.Add(at("secrets", i, "value"), "secret %q has no stored value that %s could stand for; send the value", s.Name, MaskedSecret)
		case containsNUL(s.Value):
			problems.Add(at("secrets", i, "value"), "the value of secret %q contains a NUL byte, which no environment variable can hold", s.Name)
		}
	}
}

func validateSecretName(problems *Problems, loc []any, name string, source Source) {
	switch {
	case !envNameForm.MatchString(name) || len(name) > MaxFieldLength:
		problems.Add(loc, "%q is no name of an environment variable; use letters, digits and '_', not beginning with a digit", short(name))
	case ReservedSecret(name, source):
		problems.Add(loc, "%q is reserved: the platform sets it itself; leave it out", name)
	}
}

func validateReferences(problems *Problems, refs []SecretReference) {
	seen := map[string]bool{}
	for i, r := range refs {
		validateSecretName(problems, at("secret_references", i, "name"), r.Name, SourceExternalContainer)
		if seen[r.Name] {
			problems.Add(at("secret_references", i, "name"), "secret reference %q is given twice; keep one", r.Name)
		}
		seen[r.Name] = true
		if r.SecretName == "" {
			problems.Add(at("secret_references", i, "secret_name"), "secret_name is empty; name an existing cluster secret")
		}
		if r.SecretKey == "" {
			problems.Add(at("secret_references", i, "secret_key"), "secret_key is empty; name a key of the cluster secret")
		}
	}
}

// validateFilledOnce checks that no environment variable of a request is both a secret and a reference.
func validateFilledOnce(problems *Problems, secrets []Secret, refs []SecretReference) {
	names := make([]string, len(secrets))
	for i, s := range secrets {
		names[i] = s.Name
	}
	for i, r := range refs {
		if has(names, r.Name) {
			problems.Add(at("secret_references", i, "name"), "%q is given as a secret too; keep one", r.Name)
		}
	}
}

// filledTwice is validateFilledOnce against what is stored, as sentences.
func filledTwice(d Deployment, in DeploymentPatch, facts Facts) []string {
	var found []string
	switch {
	case in.SecretReferences != nil && in.Secrets == nil:
		for _, r := range *in.SecretReferences {
			if has(facts.SecretNames, r.Name) {
				found = append(found, "secret reference "+r.Name+" is a secret of this deployment already; send secrets without it")
			}
		}
	case in.Secrets != nil && in.SecretReferences == nil:
		for _, r := range d.SecretReferences {
			for _, s := range *in.Secrets {
				if s.Name == r.Name {
					found = append(found, "secret "+s.Name+" is filled by a secret reference of this deployment already; send secret_references without it")
				}
			}
		}
	}
	return found
}

// MinRedacted is the length in bytes from which a secret value is taken out of log lines; shorter ones would blot out
// ordinary text.
const MinRedacted = 4

// Redactions returns the values that must not reach a log line, longest first so that no value hides a part of another.
func Redactions(values map[string]string) []string {
	seen := map[string]bool{}
	out := []string{}
	for _, v := range values {
		if len(v) >= MinRedacted && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		return len(out[i]) > len(out[j]) || len(out[i]) == len(out[j]) && out[i] < out[j]
	})
	return out
}

func has(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func containsNUL(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 {
			return true
		}
	}
	return false
}
