// Asks Kubernetes' own CEL, as API servers of release 1.36 configure it, about the expressions in expressions.json
// and writes answers.json. Run it with: go mod tidy && go run .
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// answer holds a value, an error, or the first reason why the expression does not compile.
type answer struct {
	Expression string `json:"expression"`
	Value      string `json:"value,omitempty"`
	Type       string `json:"type,omitempty"`
	Error      string `json:"error,omitempty"`
	Refused    string `json:"refused,omitempty"`
	Cost       uint64 `json:"cost"`
}

var variables = map[string]*cel.Type{
	"i": cel.IntType, "u": cel.UintType, "d": cel.DoubleType, "s": cel.StringType, "b": cel.BoolType,
	"y": cel.BytesType, "l": cel.ListType(cel.IntType), "ls": cel.ListType(cel.StringType),
	"m": cel.MapType(cel.StringType, cel.IntType), "x": cel.DynType,
}

var values = map[string]any{
	"i": 3, "u": uint64(4), "d": 2.5, "s": "hello", "b": true, "y": []byte("ab"), "l": []int64{3, 1, 2},
	"ls": []string{"a", "b"}, "m": map[string]int64{"a": 1, "b": 2},
	"x": map[string]any{"n": int64(5), "t": "text", "list": []any{int64(1), "two"}},
}

func shown(value ref.Val) string {
	switch v := value.(type) {
	case types.Double:
		if math.IsNaN(float64(v)) {
			return "double:nan"
		}
		return "double:" + strconv.FormatFloat(float64(v), 'g', -1, 64)
	case types.String:
		return "string:" + strconv.QuoteToASCII(string(v))
	case types.Bytes:
		return fmt.Sprintf("bytes:%x", []byte(v))
	case types.Null:
		return "null"
	case types.Timestamp:
		return fmt.Sprintf("timestamp:%d", v.UnixNano())
	case types.Duration:
		return fmt.Sprintf("duration:%d", int64(v.Duration))
	case types.Bool, types.Int, types.Uint:
		return fmt.Sprintf("%s:%v", v.Type().TypeName(), v.Value())
	case *types.Optional:
		if v.HasValue() {
			return "optional(" + shown(v.GetValue()) + ")"
		}
		return "none"
	case *types.Type:
		return "type:" + v.TypeName()
	case traits.Mapper:
		entries := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, shown(key)+"="+shown(v.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	case traits.Lister:
		items := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, shown(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return value.Type().TypeName()
}

func ask(env *cel.Env, expression string) answer {
	result := answer{Expression: expression}
	checked, issues := env.Compile(expression)
	if issues.Err() != nil {
		first := strings.SplitN(issues.Err().Error(), "\n", 2)[0]
		result.Refused = strings.TrimPrefix(first, "ERROR: <input>:")
		return result
	}
	program, err := env.Program(checked)
	if err != nil {
		result.Refused = "1:1: " + err.Error()
		return result
	}
	value, details, err := program.Eval(values)
	if details != nil && details.ActualCost() != nil {
		result.Cost = *details.ActualCost()
	}
	if err != nil {
		result.Error = err.Error()
		return result
	}
	result.Value, result.Type = shown(value), checked.OutputType().String()
	return result
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	options := []cel.EnvOption{}
	for name, kind := range variables {
		options = append(options, cel.Variable(name, kind))
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(
		environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options})
	must(err)
	env, err := set.Env(environment.StoredExpressions)
	must(err)

	var expressions []string
	text, err := os.ReadFile("expressions.json")
	must(err)
	must(json.Unmarshal(text, &expressions))
	lines := []string{}
	for _, expression := range expressions {
		line, err := json.Marshal(ask(env, expression))
		must(err)
		lines = append(lines, string(line))
	}
	must(os.WriteFile("answers.json", []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644))
}
