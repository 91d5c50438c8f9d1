package query

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

// secret is a column that a cipher seals: as an argument the text to be stored, as a destination what was stored. Columns
// that queries look into (metadata, ids, times) are none.
type secret sql.NullString

// secretBytes is a secret of bytes; those that a worker has encrypted (their type says so) are stored as they are.
type secretBytes []byte

func (s secret) raw() json.RawMessage { return raw(sql.NullString(s)) }

// hidden makes a secret of what text, object or encode return.
func hidden(v any) any {
	switch v := v.(type) {
	case string:
		return secret{String: v, Valid: true}
	default:
		return v
	}
}

// hiddenBytes makes a secret of a value that no worker has encrypted; the type of one that it has says so.
func hiddenBytes(v agent.Typed) any {
	if strings.Contains(v.Type, "+") {
		return v.Bytes
	}
	return secretBytes(v.Bytes)
}

// secretObject is the metadata of a checkpoint: its keys and what the server itself reads stay in clear, all other values
// are sealed one by one.
type secretObject string

// clearKey says whether a value of a checkpoint's metadata stays in clear: it is the library's or the server's own.
func clearKey(name string) bool {
	switch name {
	case "source", "step", "parents", "run_id", "thread_id", "graph_id", "assistant_id", "run_attempt", "created_by", "counters_since_delta_snapshot":
		return true
	}
	return strings.HasPrefix(name, "langgraph_")
}

// sealedMark begins a sealed text, which is a JSON string so that it may stand wherever JSON is expected.
const sealedMark = `"sealed:1:`

// sealedBytesMark begins sealed bytes.
const sealedBytesMark = "sealed:1:"

// sealing lets secrets through the cipher on their way to the database and back.
type sealing struct {
	Engine
	cipher *agent.Cipher // nil content = none: secrets are stored as they are
}

// Write implements Writer.
func (s sealing) Write(ctx context.Context, fn func(Conn) error) error {
	return s.Engine.Write(ctx, func(c Conn) error { return fn(s.conn(c)) })
}

// Enqueue implements Engine.
func (s sealing) Enqueue(fn func(Conn) error) agent.Commit {
	return s.Engine.Enqueue(func(c Conn) error { return fn(s.conn(c)) })
}

// Read implements Engine.
func (s sealing) Read(ctx context.Context, fn func(Conn) error) error {
	return s.Engine.Read(ctx, func(c Conn) error { return fn(s.conn(c)) })
}

func (s sealing) conn(c Conn) Conn { return sealingConn{Conn: c, cipher: *s.cipher} }

type sealingConn struct {
	Conn
	cipher agent.Cipher
}

func (c sealingConn) Exec(query string, args ...any) (int64, error) {
	args, err := c.seal(args)
	if err != nil {
		return 0, err
	}
	return c.Conn.Exec(query, args...)
}

func (c sealingConn) Send(query string, args ...any) error {
	args, err := c.seal(args)
	if err != nil {
		return err
	}
	return c.Conn.Send(query, args...)
}

func (c sealingConn) Query(query string, args ...any) (Rows, error) {
	args, err := c.seal(args)
	if err != nil {
		return nil, err
	}
	rows, err := c.Conn.Query(query, args...)
	if err != nil {
		return nil, err
	}
	return sealedRows{Rows: rows, cipher: c.cipher}, nil
}

// seal replaces secrets by what is stored of them.
func (c sealingConn) seal(args []any) ([]any, error) {
	isSecret := func(a any) bool {
		switch a.(type) {
		case secret, secretBytes, secretObject:
			return true
		}
		return false
	}
	if !slices.ContainsFunc(args, isSecret) {
		return args, nil
	}
	out := slices.Clone(args)
	for i, a := range args {
		var err error
		switch v := a.(type) {
		case secret:
			out[i], err = sealText(c.cipher, v)
		case secretBytes:
			out[i], err = sealBytes(c.cipher, v)
		case secretObject:
			out[i], err = sealObject(c.cipher, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func sealText(c agent.Cipher, v secret) (any, error) {
	if !v.Valid || c == nil {
		return sql.NullString(v), nil
	}
	sealed, err := c.Seal([]byte(v.String))
	if err != nil {
		return nil, fmt.Errorf("encrypt a value: %w", err)
	}
	return sealedMark + base64.StdEncoding.EncodeToString(sealed) + `"`, nil
}

func sealBytes(c agent.Cipher, v secretBytes) (any, error) {
	if c == nil {
		return []byte(v), nil
	}
	sealed, err := c.Seal(v)
	if err != nil {
		return nil, fmt.Errorf("encrypt a value: %w", err)
	}
	return append([]byte(sealedBytesMark), sealed...), nil
}

func sealObject(c agent.Cipher, object secretObject) (any, error) {
	if c == nil {
		return string(object), nil
	}
	return eachValue(object, func(name string, value json.RawMessage) (json.RawMessage, error) {
		if clearKey(name) {
			return value, nil
		}
		sealed, err := sealText(c, secret{String: string(value), Valid: true})
		if err != nil {
			return nil, err
		}
		return json.RawMessage(sealed.(string)), nil //nolint:forcetypeassert // a valid secret
	})
}

func openObject(c agent.Cipher, object secretObject) (secretObject, error) {
	if !strings.Contains(string(object), sealedMark) {
		return object, nil
	}
	opened, err := eachValue(object, func(_ string, value json.RawMessage) (json.RawMessage, error) {
		plain, err := openText(c, string(value))
		return json.RawMessage(plain), err
	})
	return secretObject(opened), err
}

func eachValue(object secretObject, change func(name string, value json.RawMessage) (json.RawMessage, error)) (string, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &values); err != nil {
		return "", fmt.Errorf("read the metadata of a checkpoint: %w", err)
	}
	for name, value := range values {
		var err error
		if values[name], err = change(name, value); err != nil {
			return "", err
		}
	}
	return encode(values), nil
}

// sealedRows opens the secrets of rows.
type sealedRows struct {
	Rows
	cipher agent.Cipher
}

func (r sealedRows) Scan(dest ...any) error {
	if !slices.ContainsFunc(dest, func(d any) bool { return isHidden(d) }) {
		return r.Rows.Scan(dest...)
	}
	stored := slices.Clone(dest)
	for i, d := range dest {
		switch v := d.(type) {
		case *secret:
			stored[i] = (*sql.NullString)(v)
		case *secretBytes:
			stored[i] = (*[]byte)(v)
		case *secretObject:
			stored[i] = (*string)(v)
		}
	}
	if err := r.Rows.Scan(stored...); err != nil {
		return err
	}
	for _, d := range dest {
		var err error
		switch v := d.(type) {
		case *secret:
			v.String, err = openText(r.cipher, v.String)
		case *secretBytes:
			*v, err = openBytes(r.cipher, *v)
		case *secretObject:
			*v, err = openObject(r.cipher, *v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isHidden(dest any) bool {
	switch dest.(type) {
	case *secret, *secretBytes, *secretObject:
		return true
	}
	return false
}

var errNoCipher = errors.New("a stored value is encrypted and this server has no key for it; set LANGGRAPH_AES_KEY, or encryption.path, as it was")

// openText returns what a text was before it was sealed; one from before there was encryption is left as it is.
func openText(c agent.Cipher, text string) (string, error) {
	rest, sealed := strings.CutPrefix(text, sealedMark)
	if !sealed {
		return text, nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(rest, `"`))
	if err != nil {
		return "", fmt.Errorf("a stored value is damaged: %w", err)
	}
	plain, err := open(c, raw)
	return string(plain), err
}

func openBytes(c agent.Cipher, b []byte) ([]byte, error) {
	if len(b) < len(sealedBytesMark) || string(b[:len(sealedBytesMark)]) != sealedBytesMark {
		return b, nil
	}
	return open(c, b[len(sealedBytesMark):])
}

func open(c agent.Cipher, raw []byte) ([]byte, error) {
	if c == nil {
		return nil, errNoCipher
	}
	plain, err := c.Open(raw)
	if err != nil {
		return nil, fmt.Errorf("decrypt a stored value: %w", err)
	}
	return plain, nil
}

// sealed says whether values are sealed, so that the database cannot look into them.
func (a *Agent) sealed() bool { return *a.cipher != nil }

// SealWith makes the store seal everything it writes from now on. It is called before the store is used.
func (a *Agent) SealWith(c agent.Cipher) { *a.cipher = c }

const (
	selectSealing = `SELECT proof, key FROM sealing WHERE id = 1`
	insertSealing = `INSERT INTO sealing (id, proof, key) VALUES (1, ?, ?) ON CONFLICT (id) DO NOTHING`
)

// Sealing returns what is remembered of the encryption.
func (a *Agent) Sealing(ctx context.Context) (agent.SealRecord, error) {
	return read(ctx, a.engine, getSealing)
}

// RememberSealing keeps s unless something is remembered already, and returns what is.
func (a *Agent) RememberSealing(ctx context.Context, s agent.SealRecord) (agent.SealRecord, error) {
	return write(ctx, a.engine, func(c Conn) (agent.SealRecord, error) {
		if _, err := c.Exec(insertSealing, s.Proof, text(s.Key)); err != nil {
			return agent.SealRecord{}, err
		}
		return getSealing(c)
	})
}

func getSealing(c Conn) (agent.SealRecord, error) {
	s, _, err := one(c, func(s scanner) (v agent.SealRecord, err error) {
		var key sql.NullString
		err = s.Scan(&v.Proof, &key)
		v.Key = raw(key)
		return v, err
	}, selectSealing)
	return s, err
}
