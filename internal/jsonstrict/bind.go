package jsonstrict

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

func bindRoot(doc value, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decoding into %T: not a pointer", into)
	}
	return bind(doc, target.Elem(), "")
}

// bind fills target, which can be set, with v.
func bind(v value, target reflect.Value, path string) error {
	if target.Kind() == reflect.Pointer {
		if target.IsNil() {
			target.Set(reflect.New(target.Type().Elem()))
		}
		return bind(v, target.Elem(), path)
	}
	if target.CanAddr() {
		if own, err := bindOwn(v, target.Addr().Interface(), path); own {
			return err
		}
	}
	switch target.Kind() {
	case reflect.Struct:
		return bindStruct(v, target, path)
	case reflect.Slice:
		return bindSlice(v, target, path)
	case reflect.Map:
		return bindMap(v, target, path)
	case reflect.String:
		if v.kind != text {
			return mismatch(path, text, v)
		}
		target.SetString(v.text)
		return nil
	case reflect.Bool:
		if v.kind != boolean {
			return mismatch(path, boolean, v)
		}
		target.SetBool(v.truth)
		return nil
	default:
		return bindNumber(v, target, path)
	}
}

// bindOwn lets a type read itself. A type that reads both strings and JSON gets
// the unescaped string, so that the spelling of a string never matters. The text
// of its error may hold anything, so it is not passed on.
func bindOwn(v value, target any, path string) (bool, error) {
	if r, ok := target.(*json.RawMessage); ok {
		*r = append((*r)[:0], v.raw...)
		return true, nil
	}
	fromText, isText := target.(encoding.TextUnmarshaler)
	fromJSON, isJSON := target.(json.Unmarshaler)
	var err error
	switch {
	case isText && v.kind == text:
		err = fromText.UnmarshalText([]byte(v.text))
	case isJSON:
		err = fromJSON.UnmarshalJSON(v.raw)
	case isText:
		return true, mismatch(path, text, v)
	default:
		return false, nil
	}
	if err != nil {
		return true, &Error{Path: path, Message: "not " + expectation(target)}
	}
	return true, nil
}

func expectation(target any) string {
	if reflect.TypeOf(target).String() == "*time.Time" {
		return "a time such as 2006-01-02T15:04:05Z"
	}
	return "an acceptable value"
}

func mismatch(path string, want kind, got value) *Error {
	return &Error{Path: path, Message: "expected " + want.String() + ", got " + got.kind.String()}
}

func bindStruct(v value, target reflect.Value, path string) error {
	if v.kind != object {
		return mismatch(path, object, v)
	}
	for _, m := range v.members {
		field, ok := fieldNamed(target, m.name)
		if !ok {
			return &Error{Path: pointer(path, m.name), Message: unknown(target, m.name)}
		}
		if err := bind(m.value, field, pointer(path, m.name)); err != nil {
			return err
		}
	}
	return nil
}

// fieldNamed finds the field of exactly this name; embedded structs without a
// name of their own count as their fields.
func fieldNamed(target reflect.Value, name string) (reflect.Value, bool) {
	t := target.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		own, named := fieldName(f)
		switch {
		case f.Anonymous && !named && f.Type.Kind() == reflect.Struct:
			if inner, ok := fieldNamed(target.Field(i), name); ok {
				return inner, true
			}
		case f.IsExported() && own != "" && own == name:
			return target.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// fieldName is the member a field stands for, empty for none, and whether a tag
// says so.
func fieldName(f reflect.StructField) (string, bool) {
	tag, ok := f.Tag.Lookup("json")
	if tag == "-" {
		return "", true
	}
	name, _, _ := strings.Cut(tag, ",")
	if !ok || name == "" {
		return f.Name, false
	}
	return name, true
}

// unknown helps whoever only got the case wrong.
func unknown(target reflect.Value, name string) string {
	t := target.Type()
	for i := range t.NumField() {
		if own, _ := fieldName(t.Field(i)); own != "" && strings.EqualFold(own, name) {
			return "unknown member; it is spelled " + strconv.Quote(own)
		}
	}
	return "unknown member"
}

func bindSlice(v value, target reflect.Value, path string) error {
	if v.kind != array {
		return mismatch(path, array, v)
	}
	items := reflect.MakeSlice(target.Type(), len(v.items), len(v.items))
	for i, item := range v.items {
		if err := bind(item, items.Index(i), pointerIndex(path, i)); err != nil {
			return err
		}
	}
	target.Set(items)
	return nil
}

func bindMap(v value, target reflect.Value, path string) error {
	t := target.Type()
	if t.Key().Kind() != reflect.String {
		return fmt.Errorf("decoding into %s: only maps with string keys", t)
	}
	if v.kind != object {
		return mismatch(path, object, v)
	}
	entries := reflect.MakeMapWithSize(t, len(v.members))
	for _, m := range v.members {
		entry := reflect.New(t.Elem()).Elem()
		if err := bind(m.value, entry, pointer(path, m.name)); err != nil {
			return err
		}
		entries.SetMapIndex(reflect.ValueOf(m.name).Convert(t.Key()), entry)
	}
	target.Set(entries)
	return nil
}

func bindNumber(v value, target reflect.Value, path string) error {
	switch {
	case !target.CanInt() && !target.CanUint() && !target.CanFloat():
		return fmt.Errorf("decoding into %s: not a kind of value that JSON has", target.Type())
	case v.kind != number:
		return mismatch(path, number, v)
	case target.CanFloat():
		f, err := strconv.ParseFloat(v.number.String(), target.Type().Bits())
		if err != nil {
			return &Error{Path: path, Message: "the number is out of range"}
		}
		target.SetFloat(f)
		return nil
	}
	n, whole := v.number.integer()
	switch {
	case !whole:
		return &Error{Path: path, Message: "expected a whole number"}
	case target.CanInt() && !target.OverflowInt(n):
		target.SetInt(n)
	case target.CanUint() && n >= 0 && !target.OverflowUint(uint64(n)):
		target.SetUint(uint64(n))
	default:
		return &Error{Path: path, Message: "the number is out of range"}
	}
	return nil
}
