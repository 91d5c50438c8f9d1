package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/slipway-dev/slipway"
)

// maxPage is the largest page that every host takes.
const maxPage = 100

// Page is a place in a list of a host: its number from 1 and its size.
type Page struct{ Number, Size int }

// PageAt reads a cursor; "" is the first page, of limit things. A cursor bears the size it began with.
func PageAt(cursor string, limit int) (Page, error) {
	if cursor == "" {
		return Page{1, min(max(limit, 1), maxPage)}, nil
	}
	var p Page
	if n, err := fmt.Sscanf(cursor, "%dx%d", &p.Number, &p.Size); n != 2 || err != nil || p.Number < 2 || p.Number > 1<<20 || p.Size < 1 || p.Size > maxPage || p.cursor() != cursor {
		var problems slipway.Problems
		problems.Add([]any{"query", "cursor"}, "the cursor is none that this list gave; leave it out to begin again")
		return p, problems.Err()
	}
	return p, nil
}

func (p Page) cursor() string { return fmt.Sprintf("%dx%d", p.Number, p.Size) }

// Next is the cursor of the following page, "" after the last; every host says in Link whether there is one.
func (p Page) Next(header http.Header) string {
	for _, link := range header.Values("Link") {
		if strings.Contains(link, `rel="next"`) {
			return Page{p.Number + 1, p.Size}.cursor()
		}
	}
	return ""
}
