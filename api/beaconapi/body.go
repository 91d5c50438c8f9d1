package beaconapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/slipway-dev/slipway"
)

// unpack reads the body, decompresses it and puts it back. Neither form may exceed maxBody: a bomb is found out after that
// many bytes.
func unpack(w http.ResponseWriter, r *http.Request) error {
	defer r.Body.Close()
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	var in io.Reader = http.MaxBytesReader(w, r.Body, maxBody)
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return broken(err)
		}
		in = io.LimitReader(unzipped, maxBody+1)
	default:
		return slipway.Errorf(slipway.CodeBadRequest, "Content-Encoding %q is not one this collector reads; send gzip or none", short(encoding))
	}
	body, err := readAll(in, r.ContentLength)
	if err != nil {
		return broken(err)
	}
	if len(body) > maxBody {
		return tooLarge()
	}
	r.Header.Del("Content-Encoding")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// readAll reads everything, beginning with room for what was announced.
func readAll(in io.Reader, announced int64) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, max(512, min(announced, 1<<20)+bytes.MinRead)))
	_, err := buf.ReadFrom(in)
	return buf.Bytes(), err
}

func tooLarge() error {
	return slipway.Errorf(slipway.CodeTooLarge, "the body has more than %d bytes; send less at once", maxBody)
}

func broken(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return tooLarge()
	}
	return slipway.Errorf(slipway.CodeBadRequest, "the body cannot be read: %w; send it again, whole", fmt.Errorf("%w", err))
}
