package registry

import (
	"net/http"
	"os"
	"time"
)

// getBlob answers a layer or a configuration, also a part of it.
func (c *call) getBlob(w http.ResponseWriter, req *http.Request) error {
	f, err := os.Open(c.space.blob(c.reference))
	if missing(err) {
		return refusal{http.StatusNotFound, "BLOB_UNKNOWN", "this registry has no blob " + c.reference}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Docker-Content-Digest", c.reference)
	h.Set("ETag", `"`+c.reference+`"`)
	http.ServeContent(w, req, "", time.Time{}, f)
	return nil
}
