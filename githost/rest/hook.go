package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/slipway-dev/slipway"
)

// errSignature is the same for every delivery that does not prove where it comes from.
func errSignature() error {
	return slipway.Errorf(slipway.CodeUnauthenticated, "the delivery's signature is missing or wrong; check the secret of the webhook")
}

// CheckSignature compares, in constant time, the hexadecimal HMAC-SHA256 of a body with the one that came with it.
func CheckSignature(secret, signature string, body []byte) error {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	given, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil || secret == "" || !hmac.Equal(given, mac.Sum(nil)) {
		return errSignature()
	}
	return nil
}

// CheckToken compares, in constant time, a secret that came with a delivery.
func CheckToken(secret, given string) error {
	a, b := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(given))
	if secret == "" || !hmac.Equal(a[:], b[:]) {
		return errSignature()
	}
	return nil
}

// maxKey bounds what a host may call a delivery.
const maxKey = 200

// Keys identify a signed delivery: by the host's number of it, which is not signed, and by what is.
func Keys(delivery string, body []byte) []string {
	sum := sha256.Sum256(body)
	keys := []string{"body:" + hex.EncodeToString(sum[:])}
	if delivery != "" && len(delivery) <= maxKey {
		keys = append(keys, "id:"+delivery)
	}
	return keys
}

// push is the payload of a push as GitHub, Gitea and Forgejo send it.
type push struct {
	Ref        string `json:"ref"`
	Before     string `json:"before"`
	After      string `json:"after"`
	Created    bool   `json:"created"`
	Deleted    bool   `json:"deleted"`
	Repository struct {
		CloneURL      string `json:"clone_url"`
		HTMLURL       string `json:"html_url"`
		SSHURL        string `json:"ssh_url"`
		URL           string `json:"url"`
		DefaultBranch string `json:"default_branch"`
	} `json:"repository"`
}

// ReadPush reads a push in the form that GitHub, Gitea and Forgejo share.
func ReadPush(body []byte) (*slipway.PushEvent, error) {
	var p push
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, Unreadable()
	}
	r := p.Repository
	event := &slipway.PushEvent{DefaultBranch: r.DefaultBranch}
	for _, address := range []string{r.CloneURL, r.HTMLURL, r.SSHURL, r.URL} {
		if address != "" {
			event.RepoURLs = append(event.RepoURLs, address)
		}
	}
	Moved(event, p.Ref, p.Before, p.After)
	event.Created, event.Deleted = event.Created || p.Created, event.Deleted || p.Deleted
	return Checked(event)
}

// Unreadable is the answer to a delivery that is signed but no JSON of the host.
func Unreadable() error {
	return slipway.Errorf(slipway.CodeBadRequest, "the delivery cannot be read; let the webhook send application/json")
}

// Moved fills in what a reference moved from and to; zeros stand for nothing.
func Moved(e *slipway.PushEvent, ref, before, after string) {
	e.Ref = ref
	e.Created, e.Deleted = none(before), none(after)
	if !e.Deleted {
		e.Commit = after
	}
}

func none(commit string) bool { return strings.Trim(commit, "0") == "" }

// Checked refuses what cannot be a push.
func Checked(e *slipway.PushEvent) (*slipway.PushEvent, error) {
	if !strings.HasPrefix(e.Ref, "refs/") || len(e.RepoURLs) == 0 || e.Commit != "" && !isCommit(e.Commit) {
		return nil, Unreadable()
	}
	return e, nil
}

func isCommit(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && (len(raw) == 20 || len(raw) == 32) && s == strings.ToLower(s)
}
