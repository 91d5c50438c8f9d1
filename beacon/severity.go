package beacon

// Severity numbers of OpenTelemetry that matter here (control-plane reference 9).
const (
	SeverityWarning = 13
	SeverityError   = 17
)

// Exported says whether a log record of a severity number is telemetry at all: warnings and worse are (spec 4.5, rule 2).
func Exported(severity int) bool { return severity >= SeverityWarning }

// SeverityText is the name that goes with a severity number.
func SeverityText(severity int) string {
	switch {
	case severity >= 21:
		return "Critical"
	case severity >= SeverityError:
		return "Error"
	case severity >= SeverityWarning:
		return "Warning"
	case severity >= 9:
		return "Info"
	}
	return "Debug"
}
