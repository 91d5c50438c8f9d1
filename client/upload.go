package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// UploadURL asks for a place for a source tarball: where to PUT it, and the object path to name in the PATCH.
func (c *Client) UploadURL(ctx context.Context, deploymentID string) (uploadURL, objectPath string, err error) {
	var out struct {
		UploadURL  string `json:"upload_url"`
		ObjectPath string `json:"object_path"`
	}
	err = c.do(ctx, http.MethodPost, "/v2/deployments/"+url.PathEscape(deploymentID)+"/upload-url", nil, nil, &out)
	return out.UploadURL, out.ObjectPath, err
}

// Upload PUTs a gzipped tarball of size bytes to a signed address; no API key is sent (control-plane reference 5).
func (c *Client) Upload(ctx context.Context, uploadURL string, body io.Reader, size int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, uploadURL, body)
	if err != nil {
		return fmt.Errorf("the upload address is not usable: %w", err)
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/gzip")
	res, err := c.http.Do(req)
	if err != nil {
		return c.transportError(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return answerError(res)
	}
	return nil
}
