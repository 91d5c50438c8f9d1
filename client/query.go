package client

import (
	"net/url"
	"strconv"
	"time"
)

// The helpers below leave out of a query what has its zero value.

func text(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func number(q url.Values, name string, value int) {
	if value != 0 {
		q.Set(name, strconv.Itoa(value))
	}
}

func truth(q url.Values, name string, value *bool) {
	if value != nil {
		q.Set(name, strconv.FormatBool(*value))
	}
}

func moment(q url.Values, name string, at time.Time) {
	if !at.IsZero() {
		q.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
}

// instant is nil for no time.
func instant(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
