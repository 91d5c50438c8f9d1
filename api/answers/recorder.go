package answers

import (
	"bytes"
	"fmt"
	"net/http"
)

// keepLimit bounds what is kept of a body; of a longer one only the status and the media type are looked at.
const keepLimit = 8 << 20

// Handler serves with next and tells what of its answers is wrong. The answers go on as they come.
func (c *Check) Handler(next http.Handler, tell func(wrong string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept := &recorder{ResponseWriter: w}
		path := r.URL.EscapedPath()
		defer func() {
			if p := recover(); p != nil {
				panic(p) // cut off: there is no whole answer
			}
			if r.Context().Err() != nil || kept.status == http.StatusSwitchingProtocols {
				return // nobody was there to read it, or it is no answer
			}
			if wrong := kept.wrong(c, r.Method, path); wrong != "" {
				tell(fmt.Sprintf("%s %.200s answers %d, and the description says otherwise: %s", r.Method, path, kept.status, wrong))
			}
		}()
		next.ServeHTTP(kept, r)
	})
}

// recorder keeps what passes through it.
type recorder struct {
	http.ResponseWriter
	status  int
	body    bytes.Buffer
	tooLong bool
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write keeps and passes on.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if r.tooLong = r.tooLong || r.body.Len()+len(p) > keepLimit; !r.tooLong {
		r.body.Write(p)
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController what is underneath.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) wrong(c *Check, method, path string) string {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if r.tooLong {
		return ""
	}
	return c.Wrong(method, path, r.status, r.Header().Get("Content-Type"), r.body.Bytes())
}
