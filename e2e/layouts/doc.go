// Package layouts builds applications of every layout that people have with the real installers, serves each with the real
// agent server and asks its graphs: testdata holds one directory for each.
package layouts
