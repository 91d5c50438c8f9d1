package sqlite

import (
	sqldriver "database/sql/driver"
	"encoding/binary"
	"math"

	driver "modernc.org/sqlite"
)

// Vectors are single-precision floats, little-endian.

func (dialect) Vector(v []float32) any {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func (dialect) StoredVector() string             { return "?" }
func (dialect) Likeness(column string) string    { return "slipway_product(" + column + ", ?)" }
func (dialect) VectorBytes(column string) string { return column }

func (d dialect) Multiply(stored []byte, v []float32) float64 {
	if len(stored) != 4*len(v) {
		return 0
	}
	var sum float32
	for i, x := range v {
		sum += x * math.Float32frombits(binary.LittleEndian.Uint32(stored[4*i:]))
	}
	return float64(sum)
}

// registerProduct teaches connections to multiply two vectors.
func registerProduct(d *driver.Driver) error {
	return d.RegisterDeterministicScalarFunction("slipway_product", 2, func(_ *driver.FunctionContext, args []sqldriver.Value) (sqldriver.Value, error) {
		a, okA := args[0].([]byte)
		b, okB := args[1].([]byte)
		if !okA || !okB || len(a) != len(b) {
			return nil, nil
		}
		return product(a, b), nil
	})
}

// product adds in four lanes, which processors do side by side.
func product(a, b []byte) float64 {
	var s0, s1, s2, s3 float32
	for len(a) >= 16 && len(b) >= 16 {
		s0 += float(a[0:4]) * float(b[0:4])
		s1 += float(a[4:8]) * float(b[4:8])
		s2 += float(a[8:12]) * float(b[8:12])
		s3 += float(a[12:16]) * float(b[12:16])
		a, b = a[16:], b[16:]
	}
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float(a[:4]) * float(b[:4])
		a, b = a[4:], b[4:]
	}
	return float64(s0 + s1 + s2 + s3)
}

func float(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
