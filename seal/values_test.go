package seal_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/slipway-dev/slipway/seal"
)

func TestValuesAreOpenedWithTheirOwnSecretOnly(t *testing.T) {
	t.Parallel()
	mine, err := seal.NewValues([]byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := seal.NewValues([]byte("two"))
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range [][]byte{nil, []byte("canary"), bytes.Repeat([]byte{0}, 100000)} {
		sealed, err := mine.Seal(plain)
		if err != nil {
			t.Fatal(err)
		}
		again, err := mine.Seal(plain)
		if err != nil || bytes.Equal(sealed, again) || len(plain) > 0 && bytes.Contains(sealed, plain) {
			t.Errorf("%d bytes are sealed the same way twice, or not at all (%v)", len(plain), err)
		}
		if got, err := mine.Open(sealed); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("got %d bytes (%v), want %d", len(got), err, len(plain))
		}
		sealed[len(sealed)-1] ^= 1
		if _, err := mine.Open(sealed); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("altered: got %v", err)
		}
		if _, err := other.Open(again); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("another secret: got %v", err)
		}
		if _, err := mine.Open(again[:5]); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("cut: got %v", err)
		}
	}
}
