package jsonstrict

import (
	"strconv"
	"strings"
)

// decimal is a number's exact value: digits × 10^exponent, the digits without
// zeros at either end. Zero has no digits. Two spellings of one value are equal
// decimals, and two values never are, whatever a float64 makes of them.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// maxSafe is the largest whole number that every JSON reader holds exactly.
const maxSafe = 1<<53 - 1

// smallest is the least power of ten a number other than zero may have; below
// it a float64 would lose it.
const smallest = -300

// number reads a number as the grammar of RFC 8259 has it.
func (p *parser) number(path string) (decimal, error) {
	var d decimal
	if p.peek() == '-' {
		d.negative = true
		p.at++
	}
	whole := p.digits()
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return d, malformed(path, "a number is not well formed"+p.where())
	}
	fraction, exponent := "", 0
	if p.peek() == '.' {
		p.at++
		if fraction = p.digits(); fraction == "" {
			return d, malformed(path, "a number is not well formed"+p.where())
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		sign := p.peek()
		if sign == '+' || sign == '-' {
			p.at++
		}
		written := p.digits()
		if written == "" {
			return d, malformed(path, "a number is not well formed"+p.where())
		}
		exponent = bounded(written)
		if sign == '-' {
			exponent = -exponent
		}
	}
	d.digits = strings.TrimLeft(whole+fraction, "0")
	d.exponent = exponent - len(fraction)
	trimmed := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(trimmed)
	d.digits = trimmed
	if d.digits == "" {
		return decimal{}, nil // every zero is the same zero
	}
	if !d.inRange() {
		return d, malformed(path, "a number is out of range; the largest is 9007199254740991")
	}
	return d, nil
}

func (p *parser) digits() string {
	start := p.at
	for p.at < len(p.in) && '0' <= p.in[p.at] && p.in[p.at] <= '9' {
		p.at++
	}
	return string(p.in[start:p.at])
}

// bounded reads an exponent. One too long to read is as good as the largest: a
// body is shorter than its digits would have to be to bring it back in range.
func bounded(digits string) int {
	const most = 1 << 40
	n, err := strconv.Atoi(digits)
	if err != nil || n > most {
		return most
	}
	return n
}

func (d decimal) inRange() bool {
	magnitude := len(d.digits) + d.exponent // of digits before the point
	if magnitude < smallest {
		return false
	}
	if magnitude < 16 {
		return true
	}
	if magnitude > 16 {
		return false
	}
	whole, rest := d.digits, ""
	if len(whole) > 16 {
		whole, rest = whole[:16], whole[16:]
	}
	n, err := strconv.ParseInt(whole+strings.Repeat("0", 16-len(whole)), 10, 64)
	return err == nil && (n < maxSafe || n == maxSafe && rest == "")
}

// integer returns the value where it is whole.
func (d decimal) integer() (int64, bool) {
	if d.digits == "" {
		return 0, true
	}
	if d.exponent < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(d.digits+strings.Repeat("0", d.exponent), 10, 64)
	if d.negative {
		n = -n
	}
	return n, err == nil
}

// String is the one spelling of the value: plain where that is short, else with
// an exponent.
func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	s := d.digits
	switch point := len(s) + d.exponent; {
	case d.exponent >= 0: // at most 16 digits, or it would be out of range
		s += strings.Repeat("0", d.exponent)
	case point > 0:
		s = s[:point] + "." + s[point:]
	case point > -6:
		s = "0." + strings.Repeat("0", -point) + s
	default:
		s += "e" + strconv.Itoa(d.exponent)
	}
	if d.negative {
		s = "-" + s
	}
	return s
}
