package githosttest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
)

// api answers the calls that slipway makes, in the shapes of the host's kind.
func (s *Server) api(w http.ResponseWriter, r *http.Request) {
	base := map[slipway.HostKind]string{slipway.HostGitHub: "/api/v3", slipway.HostGitea: "/api/v1", slipway.HostGitLab: "/api/v4"}[s.kind]
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), base)
	list := map[slipway.HostKind]string{slipway.HostGitHub: "/installation/repositories", slipway.HostGitea: "/user/repos", slipway.HostGitLab: "/projects"}[s.kind]
	switch {
	case !ok || base == "":
		http.NotFound(w, r)
	case path == list:
		s.list(w, r)
	default:
		s.repository(w, r, path)
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	page, _ := strconv.Atoi(q.Get("page"))
	size, _ := strconv.Atoi(q.Get("per_page") + q.Get("limit"))
	known, out := s.known(), []any{}
	for k := (page - 1) * size; k >= 0 && k < min(page*size, len(known)); k++ {
		out = append(out, s.shape(known[k]))
	}
	if page*size < len(known) {
		q.Set("page", strconv.Itoa(page+1))
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.URL, r.URL.Path, q.Encode()))
	}
	if s.kind == slipway.HostGitHub {
		answer(w, http.StatusOK, map[string]any{"total_count": len(known), "repositories": out})
		return
	}
	answer(w, http.StatusOK, out)
}

// shape is a repository as the kind shows it; "url" and others that lead elsewhere are left out.
func (s *Server) shape(path string) map[string]any {
	owner, name, _ := strings.Cut(path, "/")
	id, address := s.number(path), s.URL+"/"+path
	if s.kind == slipway.HostGitLab {
		return map[string]any{
			"id": id, "path": name, "name": name, "namespace": map[string]any{"full_path": owner}, "default_branch": "main",
			"http_url_to_repo": address + ".git", "web_url": address,
		}
	}
	return map[string]any{
		"id": id, "name": name, "full_name": path, "owner": map[string]any{"login": owner}, "default_branch": "main", "private": true,
		"clone_url": address + ".git", "html_url": address, "ssh_url": "git@scripted.example:" + path + ".git",
	}
}

func (s *Server) number(path string) int {
	for k, known := range s.known() {
		if known == path {
			return k + 1
		}
	}
	return 0
}

// repository answers calls about one repository: itself, a reference, a status.
func (s *Server) repository(w http.ResponseWriter, r *http.Request, path string) {
	prefix, parts := "/repos/", 2
	if s.kind == slipway.HostGitLab {
		prefix, parts = "/projects/", 1
	}
	rest, ok := strings.CutPrefix(path, prefix)
	split := strings.SplitN(rest, "/", parts+1)
	if !ok || len(split) < parts {
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
		return
	}
	repo, _ := url.PathUnescape(strings.Join(split[:parts], "/"))
	if s.number(repo) == 0 {
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
		return
	}
	if len(split) == parts {
		answer(w, http.StatusOK, s.shape(repo))
		return
	}
	what, _ := url.PathUnescape(split[parts])
	if commit, ok := strings.CutPrefix(what, "statuses/"); ok && r.Method == http.MethodPost {
		s.setStatus(w, r, repo, commit)
		return
	}
	s.reference(w, repo, what)
}

func (s *Server) reference(w http.ResponseWriter, repo, what string) {
	refs := s.refs(repo)
	for _, form := range []struct{ prefix, ref string }{
		{"commits/heads/", "refs/heads/"}, {"commits/tags/", "refs/tags/"}, // GitHub
		{"branches/", "refs/heads/"}, {"tags/", "refs/tags/"}, // Gitea
		{"repository/branches/", "refs/heads/"}, {"repository/tags/", "refs/tags/"}, // GitLab
	} {
		name, ok := strings.CutPrefix(what, form.prefix)
		if commit := refs[form.ref+name]; ok && commit != "" {
			answer(w, http.StatusOK, map[string]any{"sha": commit, "name": name, "commit": map[string]any{"id": commit, "sha": ""}})
			return
		}
	}
	if what == "commits/HEAD" {
		answer(w, http.StatusOK, map[string]any{"sha": refs["refs/heads/main"]})
		return
	}
	status := http.StatusNotFound
	if s.kind == slipway.HostGitHub {
		status = http.StatusUnprocessableEntity // "No commit found for SHA"
	}
	answer(w, status, map[string]string{"message": "No commit found for SHA: " + what})
}

func (s *Server) setStatus(w http.ResponseWriter, r *http.Request, repo, commit string) {
	var in map[string]string
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		answer(w, http.StatusBadRequest, map[string]string{"message": "Problems parsing JSON"})
		return
	}
	context, state := in["context"]+in["name"], in["state"]
	for word, meant := range map[string]slipway.CommitState{
		"pending": slipway.CommitPending, "success": slipway.CommitSuccess, "failure": slipway.CommitFailure, "failed": slipway.CommitFailure,
		"error": slipway.CommitCanceled, "warning": slipway.CommitCanceled, "canceled": slipway.CommitCanceled,
	} {
		if state != word {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.statuses = append(s.statuses, slipway.CommitStatus{
			RepoURL: s.URL + "/" + repo + ".git", Commit: commit, State: meant, Context: context, Description: in["description"], TargetURL: in["target_url"],
		})
		answer(w, http.StatusCreated, map[string]any{"id": len(s.statuses), "state": state})
		return
	}
	answer(w, http.StatusUnprocessableEntity, map[string]string{"message": "Validation Failed"})
}

// delivery is what the host sends of a reference that moved.
func (s *Server) delivery(path, ref, before, after string) Delivery {
	s.mu.Lock()
	number := fmt.Sprintf("delivery-%d", len(s.deliveries)+1)
	s.mu.Unlock()
	shape := s.shape(path)
	payload := map[string]any{"ref": ref, "before": before, "after": after, "pushed": number, "repository": shape}
	d := Delivery{Header: http.Header{"Content-Type": {"application/json"}}}
	if s.kind == slipway.HostGitLab {
		payload = map[string]any{"object_kind": "push", "ref": ref, "before": before, "after": after, "project": map[string]any{
			"id": shape["id"], "default_branch": "main", "git_http_url": shape["http_url_to_repo"], "web_url": shape["web_url"],
		}}
	}
	if s.kind == slipway.HostGitHub {
		payload["created"], payload["deleted"] = before == zeros, after == zeros
	}
	d.Body, _ = json.Marshal(payload) // maps of texts always encode
	s.sign(&d, "push", number)
	return d
}

// sign proves a delivery in the kind's own way.
func (s *Server) sign(d *Delivery, event, number string) {
	mac := hmac.New(sha256.New, []byte(Secret))
	mac.Write(d.Body)
	signature := hex.EncodeToString(mac.Sum(nil))
	set := func(pairs ...string) {
		for k := 0; k < len(pairs); k += 2 {
			d.Header.Set(pairs[k], pairs[k+1])
		}
	}
	switch s.kind {
	case slipway.HostGitHub:
		set("X-GitHub-Event", event, "X-GitHub-Delivery", number, "X-Hub-Signature-256", "sha256="+signature)
	case slipway.HostGitea:
		set("X-Gitea-Event", event, "X-Gitea-Delivery", number, "X-Gitea-Signature", signature)
	case slipway.HostGitLab:
		set("X-Gitlab-Event", map[string]string{"push": "Push Hook"}[event], "X-Gitlab-Event-UUID", number, "X-Gitlab-Token", Secret)
	case slipway.HostGeneric:
		set("X-Delivery-Id", number, "X-Hub-Signature-256", "sha256="+signature)
	}
}
