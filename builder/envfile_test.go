package builder_test

import "testing"

// TestAnEnvFileThatIsKeptOutOfTheSource holds that a source without the .env file it names is built: git and the archives of
// stock clients leave it out, and those clients have made its variables secrets.
func TestAnEnvFileThatIsKeptOutOfTheSource(t *testing.T) {
	t.Parallel()
	files := fetcher{"langgraph.json": {Data: []byte(`{"graphs":{"a":"./a.mjs:graph"},"env":".env"}`)}, "a.mjs": {}}
	if got := build(t, t.TempDir(), files); got.reason != "" || got.result.EnvFile != nil {
		t.Errorf("without the file: reason %q, values %v", got.reason, got.result.EnvFile)
	}
	files[".env"] = files["a.mjs"]
	if got := build(t, t.TempDir(), files); got.reason != "" || got.result.EnvFile == nil {
		t.Errorf("with the file: reason %q, values %v", got.reason, got.result.EnvFile)
	}
}
