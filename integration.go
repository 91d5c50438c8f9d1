package slipway

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// HostKind says which program a git host runs.
type HostKind string

// The kinds of git hosts. Gitea is also Forgejo; generic is any server that git reaches, without an API.
const (
	HostGitHub  HostKind = "github"
	HostGitea   HostKind = "gitea"
	HostGitLab  HostKind = "gitlab"
	HostGeneric HostKind = "generic"
)

// HostKinds lists the kinds.
func HostKinds() []HostKind { return []HostKind{HostGitHub, HostGitea, HostGitLab, HostGeneric} }

// Integration is a tenant's account at a git host: what its deployments of source githost are cloned with, and where the
// host's pushes arrive (spec 2.2, 2.6; control-plane reference 3, GithostIntegration).
type Integration struct {
	ID       string // uuid; the integration_id of deployments, and part of the address of its webhook
	TenantID string
	Kind     HostKind
	Name     string // unique in the tenant
	HostURL  string // address of the host without a trailing slash; of generic ones the prefix of its repositories
	APIURL   string // of the host's API where it is not at its usual place; "" = derived from HostURL

	// AppID, AppSlug and InstallationID are GitHub's; 0 and "" with other kinds. An app without AppID has been described
	// to the host, but the host's answer has not come yet; without InstallationID it is not installed yet.
	AppID          int64
	AppSlug        string
	InstallationID int64

	Sealed               []byte // IntegrationSecrets as JSON, bound to tenant and integration
	CreatedBy            string
	CreatedAt, UpdatedAt time.Time
}

// Usable says whether the integration has what it takes to reach the host.
func (i Integration) Usable() bool { return i.Kind != HostGitHub || i.AppID != 0 }

// IntegrationSecrets are an integration's credentials. They are in clear only between the edge and the sealer, and again
// in the adapter of the host.
type IntegrationSecrets struct {
	Username      string `json:"username,omitempty"`       // that goes with the token; "" = what the host takes
	Token         string `json:"token,omitempty"`          // gitea, gitlab, generic
	PrivateKey    string `json:"private_key,omitempty"`    // GitHub: of the app, PEM; generic: the deploy key, OpenSSH's form
	KnownHosts    string `json:"known_hosts,omitempty"`    // generic with a deploy key: the host's keys
	WebhookSecret string `json:"webhook_secret,omitempty"` // that the host signs or sends its deliveries with
}

// IntegrationCreate is the request to make an integration of a kind other than GitHub's.
type IntegrationCreate struct {
	Kind    HostKind
	Name    string
	HostURL string
	APIURL  string
	Secrets IntegrationSecrets
}

// maxCredential bounds each credential in bytes.
const maxCredential = 16 << 10

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$|^\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?$`)

// Validate checks every rule about a new integration; plainHosts are those that may be spoken to without TLS.
func (in IntegrationCreate) Validate(plainHosts []string) error {
	var problems Problems
	validateName(&problems, in.Name)
	switch in.Kind {
	case HostGitea, HostGitLab, HostGeneric:
	case HostGitHub:
		problems.Add(at("kind"), "an integration of kind github is an app that GitHub makes; run `slipway integrations github create`, or ask for an app-manifest")
	default:
		problems.Add(at("kind"), "kind %q is unknown; use gitea, gitlab or generic", short(string(in.Kind)))
	}
	ValidateHostURL(&problems, at("host_url"), in.HostURL, in.Kind == HostGeneric && in.Secrets.PrivateKey != "", plainHosts)
	if in.APIURL != "" {
		ValidateHostURL(&problems, at("api_url"), in.APIURL, false, plainHosts)
	}
	in.validateSecrets(&problems)
	return problems.Err()
}

func (in IntegrationCreate) validateSecrets(problems *Problems) {
	s := in.Secrets
	for name, value := range map[string]string{
		"username": s.Username, "token": s.Token, "private_key": s.PrivateKey, "known_hosts": s.KnownHosts, "webhook_secret": s.WebhookSecret,
	} {
		if len(value) > maxCredential {
			problems.Add(at(name), "%s has %d bytes; use at most %d", name, len(value), maxCredential)
		}
	}
	if strings.ContainsAny(s.Username+s.Token, "\r\n\x00") {
		problems.Add(at("token"), "token and username may not contain line breaks; send the token alone")
	}
	switch key := s.PrivateKey != ""; {
	case in.Kind != HostGeneric && key:
		problems.Add(at("private_key"), "private_key is for kind generic; give kind %s a token", in.Kind)
	case key && !strings.Contains(s.PrivateKey, "PRIVATE KEY-----"):
		problems.Add(at("private_key"), "private_key is no private key; send the text of the file, which begins with -----BEGIN")
	case key && strings.TrimSpace(s.KnownHosts) == "":
		problems.Add(at("known_hosts"), "known_hosts is needed with private_key, so that nobody can pose as the host; send what ssh-keyscan prints of it")
	case key && s.Token != "":
		problems.Add(at("token"), "give a token or a private_key, not both")
	case !key && s.Token == "":
		problems.Missing(at("token"))
	}
	if s.WebhookSecret != "" && len(s.WebhookSecret) < 16 {
		problems.Add(at("webhook_secret"), "webhook_secret has %d characters; use at least 16, or leave it out and get one", len(s.WebhookSecret))
	}
}

// ValidateHostURL checks the address of a git host: https, or ssh where keys are used; plain http only for plainHosts.
func ValidateHostURL(problems *Problems, loc []any, text string, ssh bool, plainHosts []string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		problems.Missing(loc)
	case err != nil || len(text) > MaxFieldLength || !hostForm.MatchString(u.Host) || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(text, " \t\r\n"):
		problems.Add(loc, "%q is no address of a git host; use one such as https://git.example.com", short(text))
	case u.User != nil && (u.Scheme != "ssh" || strings.Contains(u.User.String(), ":")):
		problems.Add(loc, "the address holds credentials; send them as username and token")
	case ssh && u.Scheme != "ssh":
		problems.Add(loc, "%q must begin with ssh:// where a private_key is used", short(text))
	case !ssh && u.Scheme == "http" && !slices.Contains(plainHosts, u.Host):
		problems.Add(loc, "%q would send credentials unencrypted; use https, or let the operator allow it with --allow-http-git %s", short(text), u.Host)
	case !ssh && u.Scheme != "https" && u.Scheme != "http":
		problems.Add(loc, "%q must begin with https://", short(text))
	}
}

var accountForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,38})$`)

// ValidateApp checks the request for the manifest of a GitHub App.
func ValidateApp(name, hostURL, apiURL, organization, redirectURL string, plainHosts []string) error {
	var problems Problems
	validateName(&problems, name)
	ValidateHostURL(&problems, at("host_url"), hostURL, false, plainHosts)
	if apiURL != "" {
		ValidateHostURL(&problems, at("api_url"), apiURL, false, plainHosts)
	}
	if organization != "" && !accountForm.MatchString(organization) {
		problems.Add(at("organization"), "organization %q is no name of a GitHub organization", short(organization))
	}
	if u, err := url.Parse(redirectURL); err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !Loopback(redirectURL)) {
		problems.Add(at("redirect_url"), "redirect_url %q must begin with https://, or with http:// on this machine", short(redirectURL))
	}
	return problems.Err()
}

// IsUUID says whether a text has the form of a uuid.
func IsUUID(text string) bool { return uuidForm.MatchString(text) }

// SameRepository says whether two addresses name one repository: the same host and path, whatever the protocol, the user,
// the case and a final ".git" are.
func SameRepository(a, b string) bool {
	left, right := RepositoryName(a), RepositoryName(b)
	return left != "" && strings.EqualFold(left, right)
}

// RepositoryName returns host/path of the address of a repository, "" if it is none. The port of https addresses is part
// of the host; that of ssh addresses is not, because it says nothing about where their pages are.
func RepositoryName(repoURL string) string {
	host, path := "", ""
	if u, err := url.Parse(repoURL); err == nil && u.Scheme != "" && u.Host != "" {
		host, path = u.Host, u.Path
		if u.Scheme == "ssh" || u.Port() == "443" && u.Scheme == "https" || u.Port() == "80" && u.Scheme == "http" {
			host = u.Hostname()
		}
	} else if _, rest, ok := strings.Cut(repoURL, "@"); ok && !strings.Contains(repoURL, "://") {
		host, path, _ = strings.Cut(rest, ":")
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if host == "" || path == "" {
		return ""
	}
	return host + "/" + path
}

// Loopback says whether an address names this machine, so that nobody else can send anything to it.
func Loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
