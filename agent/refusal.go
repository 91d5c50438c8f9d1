package agent

// HTTPRefusal is an error whose answer the application's own code has chosen: the client gets exactly this status, these
// headers and this text as its `detail` (reference 12).
type HTTPRefusal struct {
	Status  int // 100..599
	Headers [][2]string
	Detail  string
}

// Error returns the text.
func (r *HTTPRefusal) Error() string { return r.Detail }
