package dialect

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
)

// statusPath is the address of a deployment that stock clients print after a deploy (control-plane reference 2, Service).
var statusPath = regexp.MustCompile(`^/o/[^/]+/host/deployments/[^/]+/?$`)

// statusPage is the same for every deployment: whoever opens it shows a key there, with which the page asks the API. So it
// tells nobody whether there is such a deployment.
//
//go:embed status.html
var statusPage string

func sendStatusPage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; "+
		"base-uri 'none'; form-action 'none'; script-src 'sha256-"+scriptDigest()+"'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	send(w, r, "text/html; charset=utf-8", func() []byte { return []byte(statusPage) })
}

// scriptDigest names the page's one script to the browser, which runs no other.
func scriptDigest() string {
	_, script, _ := strings.Cut(statusPage, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	sum := sha256.Sum256([]byte(script))
	return base64.StdEncoding.EncodeToString(sum[:])
}
