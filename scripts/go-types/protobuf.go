package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// numbers gathers, for every struct that it meets, the fields that it has as a protocol buffer: number, JSON name and
// type in the notation of README.md. A struct that is embedded is a field without a name.
type numbers struct {
	structs map[string]string
	types   *collector
}

func printNumbers(types map[string]reflect.Type) {
	found := &numbers{structs: map[string]string{}, types: &collector{structs: map[string]string{}}}
	for _, t := range types {
		found.visit(t)
	}
	(&collector{structs: found.structs}).print()
}

func (n *numbers) visit(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	name := definition(t)
	_, isSpecial := special[name]
	if _, seen := n.structs[name]; seen || isSpecial || t.Kind() != reflect.Struct {
		return
	}
	n.structs[name] = ""
	var fields []string
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		parts := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		label, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields = append(fields, "["+parts[1]+","+quoted(label)+","+quoted(unnamed(n.types.describe(field.Type)))+"]")
		n.visit(field.Type)
	}
	n.structs[name] = "[" + strings.Join(fields, ",") + "]"
}

// unnamed drops Go's names from a type; only shapes are on the wire.
func unnamed(described string) string {
	for {
		end := strings.Index(described, "=")
		if end < 0 {
			return described
		}
		start := strings.LastIndexAny(described[:end], "*]}") + 1
		described = described[:start] + described[end+1:]
	}
}

// marshal replies to every question on standard input with the message that a Go client would send, in base64; with an empty
// line where the text is no object of its kind.
func marshal(scheme *runtime.Scheme, types map[string]reflect.Type) {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for in.More() {
		var asked question
		if err := in.Decode(&asked); err != nil {
			panic(err)
		}
		fmt.Println(base64.StdEncoding.EncodeToString(message(scheme, types[asked.Definition], []byte(asked.Text))))
	}
}

func message(scheme *runtime.Scheme, t reflect.Type, text []byte) []byte {
	object := reflect.New(t).Interface().(runtime.Object)
	if _, err := kjson.UnmarshalStrict(text, object); err != nil {
		return nil
	}
	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		panic(err)
	}
	version, kind := kinds[0].ToAPIVersionAndKind()
	raw, err := object.(stored).Marshal()
	if err != nil {
		panic(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), data...)
}
