package main

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"

	kjson "sigs.k8s.io/json"
)

// question is an object as a client might send it; its text may be any JSON.
type question struct {
	Definition string `json:"definition"`
	Text       string `json:"text"`
}

// reply is what an API server makes of it: the object as it is stored, or the error that refuses it.
type reply struct {
	Stored  json.RawMessage `json:"stored,omitempty"`
	Unknown []string        `json:"unknown,omitempty"`
	Error   string          `json:"error,omitempty"`
}

type stored interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// answer replies to every question on standard input with a line on standard output.
func answer(types map[string]reflect.Type) {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.More() {
		var asked question
		if err := in.Decode(&asked); err != nil {
			panic(err)
		}
		if err := out.Encode(replyTo(types[asked.Definition], []byte(asked.Text))); err != nil {
			panic(err)
		}
	}
}

func replyTo(t reflect.Type, text []byte) reply {
	object := reflect.New(t).Interface()
	strict, err := kjson.UnmarshalStrict(text, object)
	if err != nil {
		return reply{Error: err.Error()}
	}
	var unknown []string
	for _, complaint := range strict {
		unknown = append(unknown, complaint.Error())
	}
	kept, err := json.Marshal(throughStorage(t, object))
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{Stored: kept, Unknown: unknown}
}

// throughStorage returns what is left of an object once it was stored: all built-in kinds are kept as protocol
// buffers, which do not tell an empty list from none, except definitions of custom resources.
func throughStorage(t reflect.Type, object any) any {
	message, ok := object.(stored)
	if !ok || definition(t) == apiextensionsPackage+"CustomResourceDefinition" {
		return object
	}
	data, err := message.Marshal()
	if err != nil {
		panic(err)
	}
	read := reflect.New(t).Interface().(stored)
	if err := read.Unmarshal(data); err != nil {
		panic(err)
	}
	return read
}
