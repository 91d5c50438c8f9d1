package postgres

import (
	"strconv"
	"strings"
)

// translations turns the house's placeholders into those of Postgres, each text once per connection: `?` is the next one,
// `?2` the second.
type translations map[string]string

// maxTranslations bounds the cache; the house has fewer fixed statements, lists with many ids make more.
const maxTranslations = 500

func (t translations) of(text string) string {
	if done, ok := t[text]; ok {
		return done
	}
	if len(t) >= maxTranslations {
		clear(t)
	}
	done := translate(text)
	t[text] = done
	return done
}

// translate leaves what is quoted as it is.
func translate(text string) string {
	var b strings.Builder
	quoted, next := false, 1
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\'' {
			quoted = !quoted
		}
		if c != '?' || quoted {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('$')
		end := i + 1
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		if end == i+1 {
			b.WriteString(strconv.Itoa(next))
			next++
		}
		b.WriteString(text[i+1 : end])
		i = end - 1
	}
	return b.String()
}
