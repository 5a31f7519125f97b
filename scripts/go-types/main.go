// Prints what Go's JSON decoder and encoder know of the Kubernetes API types; see README.md.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var groups = []func(*runtime.Scheme) error{
	admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme,
	autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batch.AddToScheme, certificates.AddToScheme,
	coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme,
	networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, resource.AddToScheme,
	scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
}

// The types that read and write their JSON themselves, with the code that stands for them.
var special = map[string]string{
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":           "time",
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":      "microtime",
	"io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1":       "raw",
	"io.k8s.apimachinery.pkg.runtime.RawExtension":        "raw",
	"io.k8s.apimachinery.pkg.api.resource.Quantity":       "quantity",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString":     "intstr",
	apiextensionsPackage + "JSON":                         "raw",
	apiextensionsPackage + "JSONSchemaPropsOrArray":       "schemaOrArray",
	apiextensionsPackage + "JSONSchemaPropsOrBool":        "schemaOrBool",
	apiextensionsPackage + "JSONSchemaPropsOrStringArray": "schemaOrStrings",
}

const apiextensionsPackage = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func main() {
	types := map[string]reflect.Type{}
	collector := &collector{structs: map[string]string{}}
	scheme := runtime.NewScheme()
	for _, add := range groups {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	for kind, root := range scheme.AllKnownTypes() {
		// Lists and the internal version are never sent by a client.
		if !strings.HasSuffix(kind.Kind, "List") && kind.Version != runtime.APIVersionInternal {
			collector.describe(root)
			types[definition(root)] = root
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "answer" {
		answer(types)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "protobuf" {
		printNumbers(types)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "marshal" {
		marshal(scheme, types)
		return
	}
	collector.print()
}

// collector gathers the description of every struct that it meets, one line of JSON each.
type collector struct {
	structs map[string]string
}

func (c *collector) print() {
	names := make([]string, 0, len(c.structs))
	for name := range c.structs {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("{")
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%s:%s%s\n", quoted(name), c.structs[name], comma)
	}
	fmt.Println("}")
}

// describe returns a type in the notation of README.md.
func (c *collector) describe(t reflect.Type) string {
	if code, ok := special[definition(t)]; ok {
		return code
	}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshaler) {
		panic(fmt.Sprintf("%s reads its JSON itself; give it a code", t))
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + c.describe(t.Elem())
	case reflect.Struct:
		name := definition(t)
		if _, seen := c.structs[name]; !seen {
			c.structs[name] = "" // so that a type which contains itself ends
			c.structs[name] = "[" + strings.Join(c.fields(t, nil), ",") + "]"
		}
		return name
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return named(t, "bytes")
		}
		return named(t, "[]"+c.describe(t.Elem()))
	case reflect.Map:
		return named(t, "{"+t.Key().String()+"}"+c.describe(t.Elem()))
	default:
		return named(t, t.Kind().String())
	}
}

func (c *collector) fields(t reflect.Type, embedded []string) []string {
	var found []string
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
			continue
		case name == "" && field.Anonymous:
			found = append(found, c.fields(field.Type, append(embedded[:len(embedded):len(embedded)], field.Name))...)
			continue
		case name == "":
			name = field.Name
		}
		parts := []string{name, c.describe(field.Type), omission(options)}
		if len(embedded) > 0 {
			parts = append(parts, strings.Join(embedded, "."))
		} else if parts[2] == "" {
			parts = parts[:2]
		}
		for i, part := range parts {
			parts[i] = quoted(part)
		}
		found = append(found, "["+strings.Join(parts, ",")+"]")
	}
	return found
}

func omission(options string) string {
	for _, option := range strings.Split(options, ",") {
		if option == "omitzero" {
			return option
		}
	}
	for _, option := range strings.Split(options, ",") {
		if option == "omitempty" {
			return option
		}
	}
	return ""
}

// named puts Go's name of a type before its shape, where it has one.
func named(t reflect.Type, shape string) string {
	if t.PkgPath() == "" {
		return shape
	}
	return t.String() + "=" + shape
}

// definition returns the name that a type has in the published OpenAPI definitions.
func definition(t reflect.Type) string {
	return "io." + strings.Replace(strings.ReplaceAll(t.PkgPath(), "/", "."), "k8s.io.", "k8s.", 1) + "." + t.Name()
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}
