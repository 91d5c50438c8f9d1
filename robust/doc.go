// Package robust holds the tests that try to break the house, and the record of what they and reviews have found
// (TRACK-RECORD.md).
package robust
