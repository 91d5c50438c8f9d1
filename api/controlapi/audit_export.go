package controlapi

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
)

type exportInput struct {
	AuditFilter
	Format string `query:"format" enum:"jsonl,csv" default:"jsonl" doc:"JSON lines or CSV"`
}

// exports describes what an export answers.
func exports(op huma.Operation) huma.Operation {
	text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The whole selection, newest first, one entry a line",
		Content:     map[string]*huma.MediaType{"application/x-ndjson": text, "text/csv": text},
	}}
	return op
}

// exportAudit streams the selection page by page. An error before the first page is answered as one; after that the
// connection is cut, so that nobody takes a part for the whole.
func (a *api) exportAudit(ctx context.Context, in *exportInput) (*huma.StreamResponse, error) {
	who := authn.Principal(ctx)
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		begun := false
		out := bufio.NewWriter(hc.BodyWriter())
		write := lines(out)
		kind := "application/x-ndjson"
		if in.Format == "csv" {
			kind, write = "text/csv; charset=utf-8", table(out)
		}
		err := a.svc.ExportAudit(ctx, who, in.query(), func(page []slipway.AuditEntry) error {
			if !begun {
				begun = true
				hc.SetHeader("Content-Type", kind)
				hc.SetHeader("Content-Disposition", `attachment; filename="audit.`+in.Format+`"`)
				hc.SetStatus(http.StatusOK)
			}
			return write(page)
		})
		if err == nil {
			err = out.Flush()
		}
		switch {
		case err == nil:
		case !begun:
			a.refuse(hc, err)
		default:
			a.cfg.Log.Warn("audit export cut short", "error", err)
			panic(http.ErrAbortHandler) // the server's way to cut the connection
		}
	}}, nil
}

func lines(out io.Writer) func([]slipway.AuditEntry) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return func(page []slipway.AuditEntry) error {
		for _, e := range page {
			if err := enc.Encode(auditEntry(e)); err != nil {
				return err
			}
		}
		return nil
	}
}

func table(out io.Writer) func([]slipway.AuditEntry) error {
	w, head := csv.NewWriter(out), []string{"time", "id", "tenant_id", "principal", "operation", "subject", "outcome", "address", "request_id", "detail", "changes"}
	return func(page []slipway.AuditEntry) error {
		if head != nil {
			if err := w.Write(head); err != nil {
				return err
			}
			head = nil
		}
		for _, e := range page {
			if err := w.Write(row(e)); err != nil {
				return err
			}
		}
		w.Flush()
		return w.Error()
	}
}

func row(e slipway.AuditEntry) []string {
	changes, err := json.Marshal(e.Changes)
	if err != nil || e.Changes == nil {
		changes = []byte("[]")
	}
	cells := []string{
		e.At.UTC().Format(time.RFC3339Nano), e.ID, e.TenantID, e.Principal, e.Operation, e.Subject, string(e.Outcome), e.Address, e.RequestID,
		e.Detail, string(changes),
	}
	for i, cell := range cells {
		cells[i] = inert(cell)
	}
	return cells
}

// inert keeps a spreadsheet from taking a cell for a formula.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
