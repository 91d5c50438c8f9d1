package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/charmbracelet/lipgloss"
	"golang.org/x/term"
)

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints aligned columns with a head line.
func (a *app) table(head []string, rows [][]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// onTerminal says whether a person is looking.
func (a *app) onTerminal() bool {
	f, ok := a.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func good(text string) string {
	return lipgloss.NewStyle().Foreground(lipgloss.Color("2")).Render(text)
}
func bad(text string) string   { return lipgloss.NewStyle().Foreground(lipgloss.Color("1")).Render(text) }
func faint(text string) string { return lipgloss.NewStyle().Faint(true).Render(text) }

// plain makes a log line safe to print: what user code wrote must not move a terminal's cursor or change its colours. Lines
// inside it begin with newline.
func plain(text, newline string) string {
	var b strings.Builder
	for _, r := range strings.TrimRight(text, "\n") {
		switch {
		case r == '\n':
			b.WriteString(newline)
		case r == '\t' || !unicode.IsControl(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func value(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return *s
}

func age(t time.Time) string {
	d := time.Since(t).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
