// Package plan is the pure heart of the listener: it compares what should run of one deployment with what a runtime sees
// and says which steps come next. It is level-based: it keeps no memory, so the same world always gives the same steps,
// and doing steps twice does no harm (architecture 1, 3; quality P6).
package plan
