package robust_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
)

// git runs git in the repository of the trap.
func (r *trap) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always", "-c", "core.protectNTFS=false"}, args...)...)
	cmd.Dir, cmd.Env = r.repo, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a repository of good files and others, and a job that fetches it.
func (r *trap) commit(files map[string]string) slipway.BuildJob {
	r.t.Helper()
	r.git("init", "-q", "-b", "main")
	for name, content := range map[string]string{"agentgraph.json": app, "a.mjs": "1"} {
		if _, given := files[name]; !given {
			r.write(name, content)
		}
	}
	for name, content := range files {
		r.write(name, content)
	}
	r.git("add", "-f", ".")
	r.git("commit", "-q", "-m", "one")
	return slipway.BuildJob{RepoURL: "file://" + r.repo}
}

// write writes a file; a content that begins with "-> " is a link.
func (r *trap) write(name, content string) {
	r.t.Helper()
	at := filepath.Join(r.repo, name)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if to, isLink := strings.CutPrefix(content, "-> "); isLink {
		err = errors.Join(err, os.Symlink(to, at))
	} else {
		err = errors.Join(err, os.WriteFile(at, []byte(content), 0o644))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// tree commits a tree with entries that git itself does not add, such as a file named .git.
func (r *trap) tree(entries ...string) slipway.BuildJob {
	r.t.Helper()
	job := r.commit(nil)
	blob := r.git("hash-object", "-w", "a.mjs")
	var raw bytes.Buffer
	for _, e := range entries {
		mode, name, _ := strings.Cut(e, " ")
		sum, err := hex.DecodeString(blob)
		if err != nil {
			r.t.Fatal(err)
		}
		fmt.Fprintf(&raw, "%s %s\x00%s", mode, name, sum)
	}
	file := filepath.Join(r.outside, "tree")
	if err := os.WriteFile(file, raw.Bytes(), 0o600); err != nil {
		r.t.Fatal(err)
	}
	tree := r.git("hash-object", "-t", "tree", "-w", "--literally", file)
	commit := r.git("commit-tree", tree, "-m", "two")
	r.git("update-ref", "refs/heads/main", commit)
	return job
}

// modules commits a .gitmodules file with a submodule that is recorded in the tree.
func (r *trap) modules(path, url, more string) slipway.BuildJob {
	r.t.Helper()
	job := r.commit(map[string]string{".gitmodules": "[submodule \"s\"]\n\tpath = " + path + "\n\turl = " + url + "\n" + more})
	r.git("update-index", "--add", "--cacheinfo", "160000,"+r.git("rev-parse", "HEAD")+",s")
	r.git("commit", "-q", "-m", "two")
	return job
}

func hostileRepositories() []hostile {
	files := func(pairs ...string) func(*trap) slipway.BuildJob {
		return func(r *trap) slipway.BuildJob {
			all := map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				all[pairs[i]] = strings.ReplaceAll(pairs[i+1], "OUTSIDE", r.outside)
			}
			return r.commit(all)
		}
	}
	address := func(url, ref string) func(*trap) slipway.BuildJob {
		return func(r *trap) slipway.BuildJob {
			r.commit(nil)
			replace := strings.NewReplacer("OUTSIDE", r.outside, "MARKER", r.marker, "REPO", "file://"+r.repo, "ROOT", r.root)
			return slipway.BuildJob{RepoURL: replace.Replace(url), RepoRef: replace.Replace(ref)}
		}
	}
	configured := func(path string) func(*trap) slipway.BuildJob {
		return func(r *trap) slipway.BuildJob {
			job := r.commit(nil)
			job.ConfigPath = strings.ReplaceAll(path, "OUTSIDE", r.outside)
			return job
		}
	}
	module := func(path, url, more string) func(*trap) slipway.BuildJob {
		return func(r *trap) slipway.BuildJob {
			replace := strings.NewReplacer("OUTSIDE", r.outside, "MARKER", r.marker)
			return r.modules(path, replace.Replace(url), replace.Replace(more))
		}
	}
	tree := func(entries ...string) func(*trap) slipway.BuildJob {
		return func(r *trap) slipway.BuildJob { return r.tree(entries...) }
	}
	all := []hostile{
		{name: "configuration that is a link outside", repo: files("agentgraph.json", "-> OUTSIDE/secret.json"), want: "agentgraph.json"},
		{name: "configuration through a link", repo: func(r *trap) slipway.BuildJob {
			job := r.commit(map[string]string{"conf": "-> " + r.outside})
			job.ConfigPath = "conf/secret.json"
			return job
		}, want: "secret.json"},
		{name: "configuration by ..", repo: configured("../../outside/secret.json"), want: "secret.json"},
		{name: "configuration by an absolute path", repo: configured("OUTSIDE/secret.json"), want: "secret.json"},
		{name: "graph that is a link outside", repo: files("a.mjs", "-> OUTSIDE/secret.json"), want: "does not lead to a file of the source"},
		{name: "link with a relative way out", repo: files("data", "-> ../../../outside"), want: "does not lead to a file of the source"},
		{name: "chain of links that leads out", repo: files("a", "-> b", "b", "-> c/../..", "c/x", ""), want: "does not lead to a file of the source"},
		{name: "links in a circle", repo: files("a", "-> b", "b", "-> a"), want: "does not lead to a file of the source"},
		{name: "output of the installer that is a link", repo: files("slipway-requirements.txt", "-> OUTSIDE/secret.json"), want: "does not lead to a file of the source"},
		{name: "env file that is a link outside", repo: files("agentgraph.json", `{"env": "keys", "graphs": {"a": "./a.mjs:graph"}}`, "keys", "-> /etc/passwd"), want: "does not lead to a file of the source"},
		{name: "graph outside of the source", repo: files("agentgraph.json", `{"graphs": {"a": "../../outside/secret.mjs:graph"}}`), want: "leads out of the source"},
		{name: "file named .git", repo: tree("100644 .git", "100644 agentgraph.json"), want: ".git"},
		{name: "file named .GIT", repo: tree("100644 .GIT", "100644 agentgraph.json"), want: ".GIT"},
		{name: "file named ..", repo: tree("100644 ..", "100644 agentgraph.json"), want: ".."},
		{name: "file with a slash in its name", repo: tree("100644 ../../x", "100644 agentgraph.json"), want: "x"},
		{name: "file too large", repo: func(r *trap) slipway.BuildJob {
			raw := make([]byte, 10<<20)
			_, _ = rand.Read(raw)
			return r.commit(map[string]string{"big": string(raw)})
		}, want: "8 MiB"},
		{name: "address with a command", repo: address("ext::touch MARKER", ""), want: "repo_url"},
		{name: "address that is an option", repo: address("--upload-pack=touch MARKER", ""), want: "repo_url"},
		{name: "host that is an option", repo: address("ssh://-oProxyCommand=touch%20MARKER/x", ""), want: "repo_url"},
		{name: "host that is an option, short form", repo: address("-oProxyCommand=touch MARKER:x", ""), want: "repo_url"},
		{name: "address with a line break", repo: address("REPO\n--upload-pack=x", ""), want: "repo_url"},
		{name: "directory that is not allowed", repo: address("file://OUTSIDE", ""), want: "--allow-file-repos"},
		{name: "directory by ..", repo: address("file://ROOT/../outside", ""), want: "--allow-file-repos"},
		{name: "protocol without encryption", repo: address("git://127.0.0.1:1/x", ""), want: "https or ssh"},
		{name: "ref that is an option", repo: address("REPO", "--upload-pack=touch MARKER"), want: "repo_ref"},
		{name: "ref that is a refspec", repo: address("REPO", "+refs/*:refs/*"), want: "repo_ref"},
		{name: "ref with a way out", repo: address("REPO", "refs/heads/../../x"), want: "repo_ref"},
		{name: "ref with an expression", repo: address("REPO", "main@{upstream}"), want: "repo_ref"},
		{name: "submodule with a command", repo: module("s", "ext::touch MARKER", ""), want: "submodule"},
		{name: "submodule that is an option", repo: module("s", "--upload-pack=touch MARKER", ""), want: "submodule"},
		{name: "submodule outside", repo: module("s", "file://OUTSIDE", ""), want: "submodule"},
		{name: "submodule in .git", repo: module(".git/hooks", "file://OUTSIDE", ""), want: "submodule"},
		{name: "submodule with a command as update", repo: module("s", "./.", "\tupdate = !touch MARKER\n"), want: "submodule"},
	}
	for i := range all {
		all[i].name = "repository: " + all[i].name
	}
	return all
}
