package tarball

import (
	"archive/tar"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-dev/slipway"
	"golang.org/x/text/unicode/norm"
)

// check refuses entries by their name and type.
func check(h *tar.Header, limits Limits) error {
	name := strings.ReplaceAll(h.Name, `\`, "/")
	switch {
	case len(name) > limits.Name:
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has a name of %d bytes: %d is the limit", len(name), limits.Name)
	case strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0):
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has the absolute name %q: use relative ones", h.Name)
	case !utf8.ValidString(name):
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has the name %q, which is not UTF-8: rename the file", h.Name)
	case strings.ContainsFunc(name, unseen):
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has the name %q, which has characters that cannot be seen: rename the file", h.Name)
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return slipway.Errorf(slipway.CodeInvalid, "the source archive has %q, which leads out of it: remove the ..", h.Name)
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has the link %q: replace it by the file it points to", h.Name)
	}
	return slipway.Errorf(slipway.CodeInvalid, "the source archive has %q, which is neither a file nor a directory: leave it out", h.Name)
}

// unseen are control characters, and those that make a name look like another one: directions, and what has no width but
// the joiners of real words.
func unseen(r rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != joiner && r != nonJoiner || r == '\u2028' || r == '\u2029'
}

// distinct refuses a name that only differs in case or in how its letters are composed from one that came before: which of
// the two files a build sees would depend on the disk.
func (u *unpacking) distinct(name string) error {
	for {
		key := strings.ToLower(norm.NFC.String(name))
		if before, ok := u.names[key]; ok && before != name {
			return slipway.Errorf(slipway.CodeInvalid, "the source archive has %q and %q, which are one name on other systems: rename one", before, name)
		} else if ok {
			return nil
		}
		u.names[key] = name
		slash := strings.LastIndexByte(name, '/')
		if slash < 0 {
			return nil
		}
		name = name[:slash]
	}
}
