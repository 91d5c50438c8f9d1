package dialect

// The table of names: everything that is spelled differently in upstream's dialect, in one place, used in both directions
// (control-plane reference, "Aliases accepted on input"). A position is a path of member names from the outside of a
// document; arrays are transparent, so `resources.source` is the source of each element of `resources`.

// name is a member whose name differs, at each of the positions.
type name struct {
	at                  []string
	upstream, canonical string
}

// value is a string that differs at a position; the same holds for a query parameter that has the position's name.
type value struct{ at, upstream, canonical string }

// route is a beginning of a path that differs.
type route struct{ upstream, canonical string }

// specs are the positions of resource specs: in a deployment or revision, and in what a listener is told to run.
var specs = []string{"source_config.resource_spec", "deployments.active.resources", "deployments.candidate.resources"}

var names = []name{
	{[]string{"source_revision_config"}, "langgraph_config_path", "agentgraph_config_path"},
	{[]string{"source_config.listener_config", "deployments"}, "k8s_namespace", "cluster_namespace"},
	{[]string{"compute_config"}, "k8s_namespaces", "cluster_namespaces"},
	{specs, "redis_cpu", "cache_cpu"},
	{specs, "redis_cpu_limit", "cache_cpu_limit"},
	{specs, "redis_memory_mb", "cache_memory_mb"},
	{specs, "redis_memory_limit_mb", "cache_memory_limit_mb"},
}

var values = []value{
	{"source", "github", "githost"},
	{"source", "external_docker", "external_container"},
	{"source", "internal_docker", "internal_container"},
	{"job.source", "github", "githost"},
	{"revision_source", "github", "githost"},
	{"revision_source", "external_docker", "external_container"},
	{"revision_source", "internal_docker", "internal_container"},
	{"compute_type", "k8s", "cluster"},
}

// kinds are types of deployment that today's stock clients send below the mount and that have no word of their own here: the
// newest Python client asks for dev_zero (scale to zero) unless it is told otherwise. They come to the nearest canonical one;
// at the root they are refused (control-plane reference 10, "Settled besides").
var kinds = []value{
	{"source_config.deployment_type", "serverless", "dev"},
	{"source_config.deployment_type", "dev_zero", "dev"},
	{"source_config.deployment_type", "dev_free_zero", "dev_free"},
}

// wrappers are members that hold whole documents.
var wrappers = []string{"resources", "items"}

// absent are members of a PATCH and of POST revisions whose empty array, below the mount, leaves what is stored: a stock client
// that runs without an env file sends it (control-plane reference 10, "Settled besides").
var absent = []string{"secrets"}

// routes are tried in order, in both directions; in the description the first that fits is shown.
var routes = []route{
	{"/v1/integrations/github/", "/v1/integrations/githost/"},
	{"/v2/integrations/github/", "/v2/integrations/githost/"},
	{"/v1/integrations/forge/github/", "/v1/integrations/githost/"},
	{"/v2/integrations/forge/github/", "/v2/integrations/githost/"},
	{"/integrations/forge/github/installation", "/v2/integrations/githost/installation"},
	{"/integrations/forge/github/", "/v1/integrations/githost/"},
}

// ends are last parts of a path below a revision.
var ends = []route{{"/interrupt", "/interruption"}}

// carriers are the beginnings of the paths whose JSON bodies are documents of the control API. Everything else, signed
// deliveries of git hosts above all, passes byte for byte.
var carriers = []string{"/v1/", "/v2/", "/deployments/"}

// mute are names too common to be translated in sentences.
var mute = []string{"cluster", "dev"}
