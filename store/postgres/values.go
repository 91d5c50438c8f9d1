package postgres

import (
	"fmt"
	"reflect"
	"strings"
)

// clean makes arguments what the database's columns are: truth values are numbers as in SQLite, and texts hold no U+0000
// and no broken UTF-8, which Postgres refuses. Such characters become U+FFFD, for writing and looking up alike.
func clean(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = cleanOne(a)
	}
	return out
}

func cleanOne(a any) any {
	switch v := a.(type) {
	case nil, int, int64, float64, []byte:
		return v
	case string:
		return cleanText(v)
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	}
	v := reflect.ValueOf(a)
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Pointer:
		return cleanOne(v.Elem().Interface())
	case v.Kind() == reflect.String:
		return cleanText(v.String())
	}
	return a
}

func cleanText(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\ufffd")
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// truth reads a truth value that is stored as a number.
type truth bool

// Scan implements sql.Scanner.
func (t *truth) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		*t = v != 0
	case bool:
		*t = truth(v)
	default:
		return fmt.Errorf("cannot read %T as a truth value", src)
	}
	return nil
}
