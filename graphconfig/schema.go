package graphconfig

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	pythonVersion = regexp.MustCompile(`^3\.(\d{1,3})$`)
	nodeVersion   = regexp.MustCompile(`^\d{1,4}$`)
	apiVersion    = regexp.MustCompile(`^(~=|>~=)?\s*\d+(\.\d+){0,2}([.-]?(a|b|rc|alpha|beta|pre|dev)[.-]?\d*)?$`)
	reference     = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)
)

// schema is the table of the top-level keys (control-plane reference 7).
func schema() map[string]rule {
	minutes := number(0)
	strings := list(text)
	modules := either("an array of module names, or true", list(either("", text, strings)), flag)
	headers := object(map[string]rule{"includes": strings, "excludes": strings})
	file := located("./file.py:name")
	return map[string]rule{
		"$schema":          func(*Findings, string, any) {},
		"graphs":           graphs,
		"dependencies":     list(dependency),
		"env":              env,
		"python_version":   python,
		"node_version":     node,
		"node_loader":      filled,
		"api_version":      matching(apiVersion, `X, X.Y or X.Y.Z in quotes, or a range such as "~=0.4" or ">~=0.4"`),
		"base_image":       filled,
		"image_distro":     distro,
		"pip_config_file":  relative,
		"pip_installer":    oneOf("auto", "pip", "uv"),
		"source":           object(map[string]rule{"kind": source, "root": relative, "package": filled}),
		"dockerfile_lines": strings,
		"store": object(map[string]rule{
			"path":  file,
			"index": object(map[string]rule{"dims": whole(1, 16000), "embed": embed, "fields": strings}),
			"ttl":   object(map[string]rule{"refresh_on_read": flag, "default_ttl": minutes, "sweep_interval_minutes": minutes}),
		}),
		"checkpointer": object(map[string]rule{
			"backend": oneOf("default", "mongo", "custom"), "path": file,
			"ttl": object(map[string]rule{
				"strategy": oneOf("delete", "keep_latest"), "default_ttl": minutes, "sweep_interval_minutes": minutes, "sweep_limit": whole(1, math.MaxInt32),
			}),
			"serde": object(map[string]rule{"allowed_json_modules": modules, "allowed_msgpack_modules": modules, "pickle_fallback": flag}),
		}),
		"auth": object(map[string]rule{
			"path": file, "disable_studio_auth": flag,
			"openapi": object(map[string]rule{"securitySchemes": anyObject, "security": list(anyObject), "paths": anyObject}),
			"cache":   object(map[string]rule{"cache_keys": strings, "ttl_seconds": number(0), "max_size": whole(1, math.MaxInt32)}),
		}),
		"encryption": object(map[string]rule{"path": file}),
		"http": object(map[string]rule{
			"app": file, "disable_assistants": flag, "disable_threads": flag, "disable_runs": flag, "disable_store": flag, "disable_mcp": flag,
			"disable_a2a": flag, "disable_meta": flag, "disable_ui": flag, "disable_webhooks": flag,
			"cors": object(map[string]rule{
				"allow_origins": strings, "allow_methods": strings, "allow_headers": strings, "allow_credentials": flag,
				"allow_origin_regex": text, "expose_headers": strings, "max_age": whole(0, math.MaxInt32),
			}),
			"configurable_headers": headers, "logging_headers": headers, "middleware_order": oneOf("auth_first", "middleware_first"),
			"enable_custom_route_auth": flag, "mount_prefix": mountPrefix,
		}),
		"webhooks": object(map[string]rule{
			"env_prefix": filled, "headers": mapOf(text),
			"url": object(map[string]rule{
				"require_https": flag, "allowed_domains": list(filled), "allowed_ports": list(whole(1, 65535)), "max_url_length": whole(1, 1<<20),
				"disable_loopback": flag,
			}),
		}),
		"ui":                   mapOf(relative),
		"ui_config":            object(map[string]rule{"shared": list(filled)}),
		"keep_pkg_tools":       either("true, false, or an array of pip, setuptools and wheel", flag, list(oneOf("pip", "setuptools", "wheel"))),
		"_INTERNAL_docker_tag": filled,
		"disable_persistence":  flag,
		"project_root":         removed("source.root"),
		"package":              removed("source.package"),
	}
}

// removed takes nothing and says what took its place.
func removed(by string) rule {
	return func(found *Findings, at string, _ any) {
		found.add(at, `%s is no longer a key: use %s, with "source": {"kind": "uv"}`, at, by)
	}
}

// maxGraphs bounds how many graphs one application may have.
const maxGraphs = 1000

func graphs(found *Findings, at string, value any) {
	all, ok := value.(map[string]any)
	if !ok {
		needs(`an object from graph id to "path:attribute", such as {"agent": "./agent.py:graph"}`)(found, at, value)
	}
	if len(all) > maxGraphs {
		found.add(at, "%s has %d graphs: %d is the limit", at, len(all), maxGraphs)
	}
	for _, id := range slices.Sorted(mapKeys(all)) {
		key := at + "." + id
		if strings.TrimSpace(id) == "" {
			found.add(at, "%s has a graph without a name: give it one", at)
		}
		graph(found, key, all[id])
	}
}

func graph(found *Findings, key string, value any) {
	form, isObject := value.(map[string]any)
	if isObject {
		if form["path"] == nil {
			found.add(key, `%s has no path: write {"path": "./agent.py:graph", "description": "…"}`, key)
			return
		}
		object(map[string]rule{"description": text})(found, key, form)
		value, key = form["path"], key+".path"
	}
	spec, ok := value.(string)
	if !ok {
		found.add(key, `%s is %s: a graph must be "path:attribute" or {"path": "path:attribute", "description": "…"}`, key, kind(value))
		return
	}
	checkSpec(found, strings.TrimSuffix(key, ".path"), spec, "./agent.py:graph")
}

// dependency takes local directories, pip requirements and git+https addresses.
func dependency(found *Findings, at string, value any) {
	filled(found, at, value)
	s, _ := value.(string)
	switch {
	case strings.ContainsAny(s, "\n\r\x00"):
		found.add(at, "%s is %q: write one requirement in one line", at, s)
	case strings.HasPrefix(s, "-"):
		found.add(at, "%s is %q, an option of pip: name a directory as ./directory, or put options into requirements.txt", at, s)
	case strings.HasPrefix(s, "/") || driveForm.MatchString(s) || strings.HasPrefix(s, "file:") || strings.Contains(s, "@ file:"):
		found.add(at, "%s is %q: name a local directory by a path that starts with a dot, such as ./lib", at, s)
	case strings.HasPrefix(s, "git+") && !strings.HasPrefix(s, "git+https://"), strings.Contains(s, "@ git+") && !strings.Contains(s, "@ git+https://"):
		found.add(at, "%s is %q: git dependencies are fetched over https: write git+https://…", at, s)
	}
}

func env(found *Findings, at string, value any) {
	switch value := value.(type) {
	case string:
		relative(found, at, value)
	case map[string]any:
		for _, name := range slices.Sorted(mapKeys(value)) {
			switch value[name].(type) {
			case map[string]any, []any, nil:
				found.add(at+"."+name, "%s.%s must be a string", at, name)
			}
			if name == "" || strings.ContainsAny(name, "=\x00") {
				found.add(at+"."+name, "%s has the name %q, which no variable can have: correct it", at, name)
			}
		}
	default:
		found.add(at, "%s is %s: env must be an object of strings or the path of a .env file", at, kind(value))
	}
}

func python(found *Findings, at string, value any) {
	s, _ := value.(string)
	m := pythonVersion.FindStringSubmatch(s)
	if m == nil {
		found.add(at, `%s is %s: write major.minor in quotes, such as "3.11"`, at, kind(value))
		return
	}
	if minor, _ := strconv.Atoi(m[1]); minor < 11 {
		found.add(at, `%s is %q: 3.11 is the oldest supported`, at, s)
	}
}

func node(found *Findings, at string, value any) {
	s, _ := value.(string)
	if n, _ := strconv.Atoi(s); !nodeVersion.MatchString(s) || n < 20 {
		found.add(at, `%s is %s: write a major version of 20 or later in quotes, such as "20"`, at, kind(value))
	}
}

func distro(found *Findings, at string, value any) {
	if value == "bullseye" {
		found.add(at, "%s is bullseye, which is no longer supported: use debian, bookworm or wolfi", at)
		return
	}
	oneOf("debian", "wolfi", "bookworm")(found, at, value)
}

func source(found *Findings, at string, value any) {
	if value != "uv" {
		found.add(at, `%s is %s: "uv" is the only kind, leave source out otherwise`, at, kind(value))
	}
}

// embed takes provider:model and <path>:<function>.
func embed(found *Findings, at string, value any) {
	filled(found, at, value)
	if s, _ := value.(string); s != "" && embedFile(s) {
		checkSpec(found, at, s, "./embed.py:embed")
	}
}

// embedFile says whether an embedding is a function of the application rather than provider:model.
func embedFile(spec string) bool {
	module, _ := cut(spec)
	_, ok := fileOf(module)
	return ok || strings.HasPrefix(spec, ".")
}

func mountPrefix(found *Findings, at string, value any) {
	text(found, at, value)
	if s, _ := value.(string); s != "" && !strings.HasPrefix(s, "/") {
		found.add(at, "%s is %q: it must begin with a slash", at, s)
	}
}

// validate checks the rules between keys.
func (c *Config) validate(found *Findings) {
	if graphs, _ := c.keys["graphs"].(map[string]any); c.keys["graphs"] == nil || graphs != nil && len(graphs) == 0 {
		found.add("graphs", `graphs is missing or empty: name at least one graph, such as "graphs": {"agent": "./agent.py:graph"}`)
	}
	if c.hasGraph("python") && c.Source == nil && !c.Has("source") && emptyList(c.keys["dependencies"]) {
		found.add("dependencies", `dependencies is missing or empty: Python graphs need it, such as "dependencies": ["."]`)
	}
	c.validateSource(found)
	c.validateImage(found)
	c.validateParts(found)
}

func emptyList(value any) bool {
	all, ok := value.([]any)
	return value == nil || ok && len(all) == 0
}

func (c *Config) validateSource(found *Findings) {
	form, ok := c.keys["source"].(map[string]any)
	if !ok {
		return
	}
	if form["kind"] == nil {
		found.add("source.kind", `source.kind is missing: write "source": {"kind": "uv"}`)
	}
	if len(c.Dependencies) > 0 {
		found.add("dependencies", "dependencies and source do not go together: remove one of them")
	}
	if c.keys["python_version"] == nil {
		found.add("python_version", `python_version is missing: source.kind uv needs it, such as "3.11"`)
	}
	if c.PipInstaller == "pip" {
		found.add("pip_installer", "pip_installer is pip, but source.kind uv needs uv: remove it")
	}
}

func (c *Config) validateImage(found *Findings) {
	tag, version := c.keys["_INTERNAL_docker_tag"], c.keys["api_version"]
	if tag != nil && version != nil {
		found.add("api_version", "api_version and _INTERNAL_docker_tag do not go together: remove one of them")
	}
	name := c.BaseImage[strings.LastIndexByte(c.BaseImage, '/')+1:]
	if strings.Contains(c.APIVersion, "~=") && strings.ContainsAny(name, ":@") {
		found.add("api_version", "api_version is the range %q, but base_image %q names one image: remove the tag, or give one version", c.APIVersion, c.BaseImage)
	}
}

// validateParts checks the rules inside of what the agent server reads.
func (c *Config) validateParts(found *Findings) {
	if at(c.keys, "checkpointer", "backend") == "custom" && at(c.keys, "checkpointer", "path") == nil {
		found.add("checkpointer.path", `checkpointer.path is missing: backend custom needs it, such as "./saver.py:open_saver"`)
	}
	if c.Has("encryption") && at(c.keys, "encryption", "path") == nil {
		found.add("encryption.path", `encryption.path is missing: write it such as "./encryption.py:encryption"`)
	}
	if index, ok := at(c.keys, "store", "index").(map[string]any); ok {
		for _, name := range []string{"dims", "embed"} {
			if index[name] == nil {
				found.add("store.index."+name, `store.index.%s is missing: write "index": {"dims": 1536, "embed": "openai:text-embedding-3-small"}`, name)
			}
		}
	}
	prefix, _ := at(c.keys, "webhooks", "env_prefix").(string)
	if prefix == "" {
		prefix = "LG_WEBHOOK_"
	}
	headers, _ := at(c.keys, "webhooks", "headers").(map[string]any)
	for _, name := range slices.Sorted(mapKeys(headers)) {
		value, _ := headers[name].(string)
		for _, m := range reference.FindAllStringSubmatch(value, -1) {
			if variable, ok := strings.CutPrefix(m[1], "env."); !ok || !strings.HasPrefix(variable, prefix) {
				found.add("webhooks.headers."+name, "webhooks.headers.%s refers to %q: write ${{ env.%sNAME }}", name, m[1], prefix)
			}
		}
	}
}

// at returns a value inside of objects, nil where there is none.
func at(value any, names ...string) any {
	for _, name := range names {
		all, _ := value.(map[string]any)
		value = all[name]
	}
	return value
}
