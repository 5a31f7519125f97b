package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	core "k8s.io/kubernetes/pkg/apis/core"
)

type field = []string

var structs = map[string][]field{}

func facts() {
	walk(reflect.TypeOf(core.PodSpec{}), reflect.TypeOf(v1.PodSpec{}))
	walk(reflect.TypeOf(core.EphemeralContainer{}), reflect.TypeOf(v1.EphemeralContainer{}))
	names := slices.Sorted(maps.Keys(structs))
	fmt.Println("{")
	for i, name := range names {
		line, _ := json.Marshal(structs[name])
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		fmt.Printf("%q: %s%s\n", name, line, end)
	}
	fmt.Println("}")
}

func tag(f reflect.StructField) (string, bool) {
	parts := strings.Split(f.Tag.Get("json"), ",")
	omit := false
	for _, p := range parts[1:] {
		if p == "omitempty" || p == "omitzero" {
			omit = true
		}
	}
	return parts[0], omit
}

func flat(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, _ := tag(f)
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			out = append(out, flat(f.Type)...)
		} else {
			out = append(out, f)
		}
	}
	return out
}

func walk(in, ex reflect.Type) string {
	switch in.Kind() {
	case reflect.Pointer:
		if ex.Kind() == reflect.Pointer {
			ex = ex.Elem()
		} else {
			println("pointer mismatch", in.String(), ex.String())
		}
		return "*" + walk(in.Elem(), ex)
	case reflect.Slice:
		if in.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + walk(in.Elem(), ex.Elem())
	case reflect.Map:
		return "{}" + walk(in.Elem(), ex.Elem())
	case reflect.Struct:
		switch in.String() {
		case "resource.Quantity":
			return "quantity"
		case "intstr.IntOrString":
			return "intstr"
		case "v1.Time":
			return "time"
		}
		name := in.Name()
		if _, ok := structs[name]; ok {
			return name
		}
		structs[name] = nil
		if ex.Kind() == reflect.Pointer {
			ex = ex.Elem()
		}
		external := map[string]reflect.StructField{}
		for _, f := range flat(ex) {
			external[f.Name] = f
		}
		var fields []field
		for _, f := range flat(in) {
			if own, omit := tag(f); own != "" {
				key := own
				if name == "PersistentVolumeClaimTemplate" {
					// The metadata is embedded here; validation lets nothing else of it pass.
					if own != "labels" && own != "annotations" {
						continue
					}
					key = "metadata." + own
				}
				described := field{own, key, walk(f.Type, f.Type)}
				if omit {
					described = append(described, "omit")
				}
				fields = append(fields, described)
				continue
			}
			e, ok := external[f.Name]
			if !ok {
				// What a Pod shares with its host has moved into the security context.
				key := strings.ToLower(f.Name[:1]) + f.Name[1:]
				fields = append(fields, field{f.Name, key, walk(f.Type, f.Type)})
				continue
			}
			key, _ := tag(e)
			fields = append(fields, field{f.Name, key, walk(f.Type, e.Type)})
		}
		structs[name] = fields
		return name
	default:
		return in.Kind().String()
	}
}
