package registry

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"

	"github.com/slipway-dev/slipway"
)

// listTags answers a page of a repository's tags in their order, with a link to the next one.
func (c *call) listTags(w http.ResponseWriter, req *http.Request) error {
	entries, err := os.ReadDir(c.space.path("repositories", directory(c.name), "tags"))
	if missing(err) {
		return refusal{http.StatusNotFound, "NAME_UNKNOWN", "there is no repository " + c.name + "; push to it first"}
	}
	if err != nil {
		return err
	}
	tags := []string{}
	for _, entry := range entries {
		tags = append(tags, entry.Name())
	}
	tags, more := page(tags, req.URL.Query())
	if more {
		next := url.Values{"n": {strconv.Itoa(len(tags))}, "last": {tags[len(tags)-1]}}
		w.Header().Set("Link", "<"+c.path("tags", "list")+"?"+next.Encode()+`>; rel="next"`)
	}
	w.Header().Set("Content-Type", "application/json")
	return ignored(json.NewEncoder(w).Encode(map[string]any{
		"name": slipway.RegistryPrefix + "/" + c.tenant + "/" + c.name, "tags": tags,
	}))
}

// page cuts the page out of all tags that the query's n and last ask for.
func page(tags []string, query url.Values) (part []string, more bool) {
	if last := query.Get("last"); last != "" {
		i, found := slices.BinarySearch(tags, last)
		if found {
			i++
		}
		tags = tags[i:]
	}
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil || n < 1 || n > maxTags {
		n = maxTags
	}
	return tags[:min(n, len(tags))], len(tags) > n
}
