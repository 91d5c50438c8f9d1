package generic

import (
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
)

// references are what a server advertises of a repository.
type references struct {
	commits map[string]string // by full name; of tags with a message also NAME^{}
	head    string            // full name of the default branch; "" = unknown
}

// parseRefs reads the first version of git's advertisement: lines that begin with their length in four hexadecimal digits,
// each a commit and a name, the first with the server's abilities behind a NUL.
func parseRefs(raw []byte) (references, error) {
	refs := references{commits: map[string]string{}}
	for rest := string(raw); rest != ""; {
		if len(rest) < 4 {
			return refs, noGit()
		}
		n, err := strconv.ParseUint(rest[:4], 16, 16)
		if err != nil || n > 0 && (n < 4 || int(n) > len(rest)) {
			return refs, noGit()
		}
		line := rest[4:max(n, 4)]
		rest = rest[max(n, 4):]
		if !strings.HasPrefix(line, "#") {
			refs.add(strings.TrimSuffix(line, "\n"))
		}
	}
	if len(refs.commits) == 0 {
		return refs, slipway.Errorf(slipway.CodeNotFound, "the repository is empty: push a commit to it")
	}
	return refs, nil
}

func (r *references) add(line string) {
	line, abilities, _ := strings.Cut(line, "\x00")
	for ability := range strings.FieldsSeq(abilities) {
		if head, ok := strings.CutPrefix(ability, "symref=HEAD:"); ok {
			r.head = head
		}
	}
	if commit, name, ok := strings.Cut(line, " "); ok && name != "capabilities^{}" {
		r.commits[name] = commit
	}
}

func noGit() error {
	return slipway.Errorf(slipway.CodeNotFound, "the address does not answer as a git repository does: check it")
}
